#include "comm/tcp/reception.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <poll.h>

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
  return send_reply(socket, kind, std::as_bytes(std::span(content.substr(0, kMostReasonBytes))));
}

Reception::Reception(UniqueFd listener, uint64_t key, Note note)
    : listener_(std::move(listener)), key_(key), note_(std::move(note)) {}

std::vector<Guest> Reception::admit(std::chrono::milliseconds at_most,
                                    std::span<const int> others) {
  std::vector<pollfd> polls = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
  for (const Newcomer& each : newcomers_) polls.push_back({each.socket.get(), POLLIN, 0});
  for (const int other : others) polls.push_back({other, POLLRDHUP, 0});
  ::poll(polls.data(), polls.size(), static_cast<int>(at_most.count()));

  accept_newcomers();
  std::vector<Guest> guests;
  std::erase_if(newcomers_, [&](Newcomer& newcomer) {
    const State state = read(newcomer);
    if (state == State::kIntroduced) {
      guests.push_back({std::move(newcomer.socket), newcomer.hello, newcomer.from});
    }
    return state != State::kWaiting;
  });
  return guests;
}

void Reception::accept_newcomers() {
  while (true) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    if (newcomers_.size() == kMostWaiting) {
      turn_away(newcomers_.front(), "it said nothing while many others came");
      newcomers_.erase(newcomers_.begin());
    }
    prepare(socket.get());
    const Address from = Address::of_peer(socket.get());
    newcomers_.push_back({std::move(socket), from, Clock::now() + kHelloTime});
  }
}

Reception::State Reception::read(Newcomer& newcomer) {
  const auto bytes = std::as_writable_bytes(std::span(&newcomer.hello, 1));
  const ssize_t got = ::recv(newcomer.socket.get(),
                             bytes.data() + newcomer.bytes,
                             bytes.size() - newcomer.bytes,
                             MSG_DONTWAIT);
  const auto stranger = [&](const std::string& why) {
    turn_away(newcomer, why);
    return State::kStranger;
  };
  if (got == 0) return stranger("it left without a word");
  if (got < 0 && errno != EAGAIN && errno != EINTR) return stranger(std::strerror(errno));
  newcomer.bytes += static_cast<size_t>(std::max<ssize_t>(got, 0));

  const Hello known;
  const size_t said = std::min(newcomer.bytes, sizeof(known.magic));
  if (std::memcmp(&newcomer.hello.magic, &known.magic, said) != 0) {
    return stranger("it is not a rank of Lockstep");
  }
  if (newcomer.bytes < sizeof(Hello)) {
    return Clock::now() < newcomer.deadline ? State::kWaiting
                                            : stranger("it did not introduce itself");
  }
  if (newcomer.hello.version != Hello::kVersion) {
    return stranger("it is a rank of another version of Lockstep");
  }
  if (newcomer.hello.key != key_) return stranger("it is a rank of another job");
  return State::kIntroduced;
}

void Reception::turn_away(const Newcomer& newcomer, const std::string& why) {
  send_reply(newcomer.socket.get(), Reply::Kind::kRefused, "rank 0 refused it: " + why);
  ++strangers_;
  last_stranger_ = fmt::format("{}: {}", newcomer.from.to_string(), why);
  tell("refused a connection from " + last_stranger_);
}

void Reception::tell(const std::string& text) {
  if (++notes_ <= kMostNotes && note_) note_(text);
}

std::string Reception::strangers() const {
  if (strangers_ == 0) return {};
  return fmt::format("; {} {} refused, the last one {}",
                     strangers_,
                     strangers_ == 1 ? "connection was" : "connections were",
                     last_stranger_);
}

}  // namespace lockstep::comm::tcp
