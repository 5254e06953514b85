#include "comm/tcp/link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <sys/uio.h>

namespace lockstep::comm::tcp {
namespace {

constexpr size_t kHeaderBytes = sizeof(FrameHeader);
constexpr size_t kGrowth = size_t{1} << 20;  // a claimed size takes no memory before its bytes come

bool must_wait(int error) {
  return error == EAGAIN || error == EINTR;
}

}  // namespace

void Link::send(const Operation& operation, std::span<const std::byte> bytes, bool& done) {
  const FrameHeader header = {
      .kind = operation.kind, .sequence = operation.sequence, .bytes = bytes.size()};
  outgoing_.push_back({header, bytes, 0, &done});
  flush();
}

void Link::expect(const Operation& operation, std::span<std::byte> bytes, bool& done) {
  const Expected expected = {operation, bytes, &done};
  const auto is_its = [&](const FrameHeader& header) {
    return header.sequence == operation.sequence;
  };
  const auto early =
      std::ranges::find_if(early_, [&](const Early& each) { return is_its(each.header); });
  if (early != early_.end()) {
    check_same_call(early->header, expected);
    std::memcpy(bytes.data(), early->bytes.data(), bytes.size());
    early_.erase(early);
    done = true;
    return;
  }
  if (received_ >= kHeaderBytes && !into_ && is_its(header_)) {  // its first part is here
    check_same_call(header_, expected);
    std::memcpy(bytes.data(), early_body_.data(), early_body_.size());
    early_body_.clear();
    into_ = expected;
    return;
  }
  expected_.push_back(expected);
}

void Link::progress() {
  if (closed_since_) return;
  flush();
  read();
}

void Link::flush() {
  while (!outgoing_.empty() && !closed_since_) {
    Outgoing& first = outgoing_.front();
    const auto header = std::as_bytes(std::span(&first.header, 1));
    std::array<iovec, 2> parts{};
    size_t count = 0;
    const auto add = [&](std::span<const std::byte> bytes) {
      if (bytes.empty()) return;
      parts[count++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
    };
    add(header.subspan(std::min(first.written, kHeaderBytes)));
    add(first.bytes.subspan(first.written - std::min(first.written, kHeaderBytes)));
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      return;  // a closed connection shows when it is read, after the peer's last messages
    }
    first.written += static_cast<size_t>(sent);
    if (first.written < kHeaderBytes + first.bytes.size()) return;
    *first.done = true;
    outgoing_.pop_front();
  }
}

// One message a call, so that a busy peer does not hold the others up.
void Link::read() {
  if (received_ < kHeaderBytes) {
    const auto header = std::as_writable_bytes(std::span(&header_, 1));
    received_ += read_some(header.subspan(received_));
    if (received_ < kHeaderBytes) return;
    begin_body();
  }
  size_t body = received_ - kHeaderBytes;
  while (body < header_.bytes) {
    if (!into_) early_body_.resize(std::min<size_t>(header_.bytes, body + kGrowth));
    const size_t got = read_some((into_ ? into_->bytes : std::span(early_body_)).subspan(body));
    body += got;
    if (!into_) early_body_.resize(body);
    if (got == 0) break;
  }
  received_ = kHeaderBytes + body;
  if (body == header_.bytes) end_body();
}

void Link::begin_body() {
  if (header_.magic != FrameHeader::kMagic || header_.bytes == 0) {
    throw CommError(fmt::format("rank {} cannot read what rank {} sends", rank_, peer_),
                    "it is not a message of Lockstep",
                    "see whether another program uses their ports");
  }
  const auto found = std::ranges::find_if(expected_, [this](const Expected& each) {
    return each.operation.sequence == header_.sequence;
  });
  if (found == expected_.end()) return;
  check_same_call(header_, *found);
  into_ = *found;
  expected_.erase(found);
}

void Link::end_body() {
  if (into_) {
    *into_->done = true;
  } else {
    early_.push_back({header_, std::exchange(early_body_, {})});
  }
  into_.reset();
  received_ = 0;
}

// 0 where there is nothing now.
size_t Link::read_some(std::span<std::byte> into) {
  const ssize_t got = ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0 || !must_wait(errno)) closed_since_ = Clock::now();
  return 0;
}

void Link::check_same_call(const FrameHeader& header, const Expected& expected) const {
  if (header.kind == expected.operation.kind && header.bytes == expected.bytes.size()) return;
  const Operation theirs = {.kind = header.kind, .sequence = header.sequence};
  throw CommError(
      fmt::format("ranks {} and {} made different calls", rank_, peer_),
      fmt::format("rank {} in {} expected {} bytes, rank {} in {} sent {}",
                  rank_,
                  to_string(expected.operation),
                  expected.bytes.size(),
                  peer_,
                  header.kind <= Operation::Kind::kAllocate ? to_string(theirs) : "another call",
                  header.bytes));
}

void Link::abandon() {
  outgoing_.clear();
  expected_.clear();
  into_.reset();
  if (!closed_since_) closed_since_ = Clock::now();
  socket_ = UniqueFd();
}

}  // namespace lockstep::comm::tcp
