#include "comm/tcp/rank_listener.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <poll.h>

#include "core/errno_text.h"

namespace lockstep::comm::tcp {
namespace {

static_assert(sizeof(Hello) == 40 && sizeof(Reply) == 16, "no padding: they go over the wire");

}  // namespace

bool send_reply(int socket, Reply::Kind kind, std::span<const std::byte> content) {
  const Reply reply = {.kind = kind, .bytes = static_cast<uint32_t>(content.size())};
  std::vector<std::byte> message(sizeof(reply) + content.size());
  std::memcpy(message.data(), &reply, sizeof(reply));
  if (!content.empty()) {
    std::memcpy(message.data() + sizeof(reply), content.data(), content.size());
  }
  return send_all(socket, message, Clock::now() + std::chrono::seconds(5));
}

bool send_reply(int socket, Reply::Kind kind, std::string_view content) {
  return send_reply(socket, kind, std::as_bytes(std::span(content.substr(0, kMaxReasonBytes))));
}

RankListener::RankListener(UniqueFd listener, uint64_t key, Note note)
    : listener_(std::move(listener)), key_(key), note_(std::move(note)) {}

std::vector<JoiningRank> RankListener::accept(std::chrono::milliseconds at_most,
                                              std::span<const int> others) {
  std::vector<pollfd> polls = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
  for (const Connection& each : pending_) polls.push_back({each.socket.get(), POLLIN, 0});
  for (const int other : others) polls.push_back({other, POLLRDHUP, 0});
  ::poll(polls.data(), polls.size(), static_cast<int>(at_most.count()));

  accept_connections();
  std::vector<JoiningRank> accepted;
  std::erase_if(pending_, [&](Connection& connection) {
    const State state = read(connection);
    if (state == State::kAccepted) {
      accepted.push_back({std::move(connection.socket), connection.hello, connection.from});
    }
    return state != State::kWaiting;
  });
  return accepted;
}

void RankListener::accept_connections() {
  while (true) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    const bool has_room = pending_.size() < kMaxWaiting || reject_silent();
    prepare(socket.get());
    const Address from = Address::of_peer(socket.get());
    pending_.push_back({std::move(socket), from, Clock::now() + kHelloTime});
    if (!has_room) return;  // what the others say is read first
  }
}

bool RankListener::reject_silent() {
  const auto is_silent = [](const Connection& connection) {
    std::byte next{};
    const int socket = connection.socket.get();
    return connection.bytes == 0 && ::recv(socket, &next, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
  };
  const auto silent = std::ranges::find_if(pending_, is_silent);
  if (silent == pending_.end()) return false;
  reject(*silent, "it said nothing while many others came");
  pending_.erase(silent);
  return true;
}

RankListener::State RankListener::read(Connection& connection) {
  const auto bytes = std::as_writable_bytes(std::span(&connection.hello, 1));
  const ssize_t got = ::recv(connection.socket.get(),
                             bytes.data() + connection.bytes,
                             bytes.size() - connection.bytes,
                             MSG_DONTWAIT);
  const auto reject_it = [&](const std::string& why) {
    reject(connection, why);
    return State::kRejected;
  };
  if (got == 0) return reject_it("it left without a word");
  if (got < 0 && errno != EAGAIN && errno != EINTR) return reject_it(errno_text());
  connection.bytes += static_cast<size_t>(std::max<ssize_t>(got, 0));

  const Hello known;
  const size_t said = std::min(connection.bytes, sizeof(known.magic));
  if (std::memcmp(&connection.hello.magic, &known.magic, said) != 0) {
    return reject_it("it is not a rank of Lockstep");
  }
  if (connection.bytes < sizeof(Hello)) {
    return Clock::now() < connection.deadline ? State::kWaiting
                                              : reject_it("it did not introduce itself");
  }
  if (connection.hello.version != Hello::kVersion) {
    return reject_it("it is a rank of another version of Lockstep");
  }
  if (connection.hello.key != key_) return reject_it("it is a rank of another job");
  return State::kAccepted;
}

void RankListener::reject(const Connection& connection, const std::string& why) {
  send_reply(connection.socket.get(), Reply::Kind::kRefused, "rank 0 refused it: " + why);
  ++rejected_;
  last_rejected_ = fmt::format("{}: {}", connection.from.to_string(), why);
  tell("refused a connection from " + last_rejected_);
}

void RankListener::tell(const std::string& text) {
  if (++notes_ <= kMaxNotes && note_) note_(text);
}

std::string RankListener::rejections() const {
  if (rejected_ == 0) return {};
  return fmt::format("; {} {} refused, the last one {}",
                     rejected_,
                     rejected_ == 1 ? "connection was" : "connections were",
                     last_rejected_);
}

}  // namespace lockstep::comm::tcp
