#include "comm/tcp/rank_listener.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <poll.h>

#include "comm/tcp/socket_owner.h"
#include "core/errno_text.h"

namespace lockstep::comm::tcp {
namespace {

constexpr std::chrono::milliseconds kDescriptorPause{50};

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

  std::vector<JoiningRank> accepted;
  accept_connections(accepted);
  std::erase_if(pending_, [&](Connection& connection) { return settle(connection, accepted); });
  return accepted;
}

// It takes at most kMaxWaiting at a time: what each of them says is read before it is the oldest.
void RankListener::accept_connections(std::vector<JoiningRank>& accepted) {
  for (size_t i = 0; i < kMaxWaiting; ++i) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
      if (pending_.empty()) {  // others have all descriptors: poll() would return at once
        std::this_thread::sleep_for(kDescriptorPause);
        return;
      }
      make_room(accepted);
      continue;
    }
    if (pending_.size() >= kMaxWaiting) make_room(accepted);
    prepare(socket.get());
    const Address from = Address::of_peer(socket.get());
    pending_.push_back({std::move(socket), from, Clock::now() + kHelloTime});
  }
}

void RankListener::make_room(std::vector<JoiningRank>& accepted) {
  Connection oldest = std::move(pending_.front());
  pending_.erase(pending_.begin());
  if (!settle(oldest, accepted)) {
    reject(oldest, "it did not introduce itself while many others came");
  }
}

bool RankListener::settle(Connection& connection, std::vector<JoiningRank>& accepted) {
  const State state = read(connection);
  if (state == State::kAccepted) {
    accepted.push_back({std::move(connection.socket), connection.hello, connection.from});
  }
  return state != State::kWaiting;
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
  if (belongs_to_another_user(connection.socket.get())) {
    return reject_it("it belongs to another user of this host");
  }
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
