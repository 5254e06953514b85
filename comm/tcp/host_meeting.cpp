#include "comm/tcp/host_meeting.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include "comm/die.h"
#include "comm/random_number.h"
#include "comm/seconds.h"
#include "comm/sockets.h"
#include "comm/tcp/meeting_file.h"
#include "core/check.h"
#include "core/digest.h"
#include "core/errno_text.h"
#include "core/first_few.h"
#include "core/words.h"

namespace lockstep::comm::tcp {
namespace {

// Where rank 0 waits.
struct Endpoint {
  UniqueFd listener;
  uint64_t key = 0;
  std::unique_ptr<MeetingFile> file;
};

Endpoint endpoint_in_file(const std::string& path) {
  Endpoint endpoint;
  endpoint.listener = listen_at(Address::any(AF_INET, 0));
  if (!endpoint.listener.valid()) {
    throw EnvironmentError("rank 0 cannot listen for the others", errno_text());
  }
  endpoint.key = random_number();
  const uint16_t port = Address::of_socket(endpoint.listener.get()).port();
  MeetingNotice notice = {.key = endpoint.key, .host = host_sharing_memory(), .addresses = {}};
  notice.addresses.push_back(Address::any(AF_INET, port));
  for (const Address& each : addresses_of_this_host()) {
    if (each.family() == AF_INET) notice.addresses.push_back(each.with_port(port));
  }
  // Ranks of this host come by the loopback address.
  Address::Bytes loopback = notice.addresses.front().bytes();
  loopback[12] = 127;
  loopback[15] = 1;
  notice.addresses.front() = Address(loopback, port);
  endpoint.file = std::make_unique<MeetingFile>(path, notice);
  return endpoint;
}

// A name may stand for another address on other hosts, as a host's own name does on Debian: then
// rank 0 listens on all of its addresses.
bool names_one_address(const std::string& host, const Address& address) {
  return host == address.host() || (host == "localhost" && address.is_loopback());
}

UniqueFd listen_on(const std::string& host, const Address& address) {
  if (names_one_address(host, address)) {
    UniqueFd listener = listen_at(address);
    if (listener.valid() || errno != EADDRNOTAVAIL || address.is_loopback()) return listener;
  }
  return listen_at(Address::any(address.family(), address.port()));
}

Endpoint endpoint_at_address(const MeetingPlace& place) {
  std::string problem;
  int error = 0;
  for (const uint16_t port : place.ports) {
    for (const Address& address : resolve(place.host, port, problem)) {
      UniqueFd listener = listen_on(place.host, address);
      error = errno;
      if (listener.valid()) {
        return {.listener = std::move(listener),
                .key = digest(std::as_bytes(std::span(place.token))),
                .file = {}};
      }
    }
  }
  if (error == 0) {
    throw EnvironmentError("ranks cannot meet at " + to_string(place),
                           problem,
                           "name rank 0's host so that all hosts can resolve it, or give its IP "
                           "address");
  }
  if (error == EADDRINUSE) {
    throw EnvironmentError(
        fmt::format("rank 0 cannot listen at {}", to_string(place)),
        fmt::format("port {} is in use by another program", fmt::join(place.ports, ", ")),
        "see who has it with \"ss -ltnp\", or let all ranks meet at another port; 0 stands for a "
        "free one");
  }
  throw EnvironmentError(fmt::format("rank 0 cannot listen at {}", to_string(place)),
                         errno_text(error),
                         "choose port 1024 or higher, which needs no privileges");
}

Endpoint open_endpoint(const MeetingPlace& place) {
  return place.file.empty() ? endpoint_at_address(place) : endpoint_in_file(place.file);
}

class Host {
 public:
  Host(const MeetingPlace& place, int size, const MeetingOptions& options)
      : place_(place),
        endpoint_(open_endpoint(place)),
        listener_(std::move(endpoint_.listener), endpoint_.key, options.note),
        timeout_(options.timeout),
        stop_(options.stop),
        joined_(static_cast<size_t>(size)) {}

  Meeting run() {
    const Clock::time_point deadline = Clock::now() + timeout_;
    for (std::vector<size_t> missing = absent(); !missing.empty(); missing = absent()) {
      const auto left = std::min(time_left(deadline), std::chrono::milliseconds(200));
      if (left.count() == 0) fail(absence(missing));
      if (stop_ && stop_()) fail(stopped_error());
      std::vector<int> sockets;
      for (const auto& peer : joined_) {
        if (peer) sockets.push_back(peer->socket.get());
      }
      for (JoiningRank& peer : listener_.accept(left, sockets)) add(std::move(peer));
      drop_closed();
    }
    return finish();
  }

 private:
  std::vector<size_t> absent() const {
    std::vector<size_t> ranks;
    for (size_t rank = 1; rank < joined_.size(); ++rank) {
      if (!joined_[rank]) ranks.push_back(rank);
    }
    return ranks;
  }

  CommError absence(std::span<const size_t> missing) const {
    const bool one = missing.size() == 1;
    return CommError(
        fmt::format("{} of {} ranks did not come: rank{} {}",
                    missing.size(),
                    joined_.size(),
                    one ? "" : "s",
                    first_few(missing)),
        fmt::format("rank 0 waited {} s at {}{}",
                    seconds_of(timeout_),
                    to_string(place_),
                    listener_.rejections()),
        fmt::format("see whether {} started, with the same place to meet and number of ranks",
                    one ? "it was" : "they were"));
  }

  void add(JoiningRank peer) {
    drop_closed();
    if (const std::optional<UsageError> error = what_is_wrong(peer)) {
      tell_failure(peer, *error);
      fail(*error);
    }
    if (send_reply(peer.socket.get(), Reply::Kind::kWelcome)) {
      joined_[static_cast<size_t>(peer.hello.rank)] = std::move(peer);
    }
  }

  std::optional<UsageError> what_is_wrong(const JoiningRank& peer) const {
    const int size = static_cast<int>(joined_.size());
    const Hello& hello = peer.hello;
    if (hello.size != size) {
      return UsageError("ranks were started with different numbers of ranks",
                        fmt::format("rank {} at {} was told {}, rank 0 was told {}",
                                    hello.rank,
                                    peer.from.host(),
                                    hello.size,
                                    size),
                        "give every process the same number of ranks");
    }
    if (hello.rank < 0 || hello.rank >= size) {
      return UsageError(fmt::format("there is no rank {} among {} ranks", hello.rank, size),
                        fmt::format("the process at {} was started as it", peer.from.to_string()),
                        "give each process its own rank, starting at 0");
    }
    const auto& first = joined_[static_cast<size_t>(hello.rank)];
    if (hello.rank > 0 && !first) return std::nullopt;
    return UsageError(fmt::format("two processes say that they are rank {}", hello.rank),
                      fmt::format("one is at {}, the other at {}",
                                  first ? first->from.to_string() : to_string(place_),
                                  peer.from.to_string()),
                      "give each process its own rank, starting at 0");
  }

  // Those that came and ended: they may come again.
  void drop_closed() {
    for (size_t rank = 1; rank < joined_.size(); ++rank) {
      std::optional<JoiningRank>& peer = joined_[rank];
      if (!peer || !is_closed(peer->socket.get())) continue;
      listener_.tell(fmt::format(
          "rank {} at {} left before all ranks had come", rank, peer->from.to_string()));
      peer.reset();
    }
  }

  static void tell_failure(const JoiningRank& peer, const Error& error) {
    send_reply(peer.socket.get(), Reply::Kind::kFailed, encode_error(error));
  }

  template <class E>
  [[noreturn]] void fail(E error) {
    for (const auto& peer : joined_) {
      if (peer) tell_failure(*peer, error);
    }
    throw E(std::move(error));
  }

  Meeting finish() {
    Meeting meeting;
    meeting.table.secret = random_number();
    meeting.table.ranks.resize(joined_.size());
    meeting.sockets.resize(joined_.size());
    meeting.table.ranks[0].host = host_sharing_memory();
    for (size_t rank = 1; rank < joined_.size(); ++rank) {
      const std::optional<JoiningRank>& peer = joined_[rank];
      LS_CHECK(peer.has_value(), "[meeting] rank {}: absent", rank);
      meeting.table.ranks[rank] = {
          .address = peer->from.bytes(), .host = peer->hello.host, .port = peer->hello.port};
    }
    std::vector<std::byte> message(sizeof(uint64_t) + joined_.size() * sizeof(RankAddress));
    std::memcpy(message.data(), &meeting.table.secret, sizeof(uint64_t));
    std::memcpy(message.data() + sizeof(uint64_t),
                meeting.table.ranks.data(),
                joined_.size() * sizeof(RankAddress));
    for (size_t rank = 1; rank < joined_.size(); ++rank) {
      std::optional<JoiningRank>& peer = joined_[rank];
      LS_CHECK(peer.has_value(), "[meeting] rank {}: absent", rank);
      meeting.sockets[rank] = std::move(peer->socket);
      send_reply(meeting.sockets[rank].get(), Reply::Kind::kRankTable, std::span(message));
    }
    return meeting;
  }

  const MeetingPlace& place_;
  Endpoint endpoint_;
  RankListener listener_;
  const std::chrono::milliseconds timeout_;
  const std::function<bool()> stop_;
  std::vector<std::optional<JoiningRank>> joined_;  // by rank; none for rank 0
};

}  // namespace

Meeting host_meeting(const MeetingPlace& place, int size, const MeetingOptions& options) {
  return Host(place, size, options).run();
}

Error stopped_error() {
  return {ExitCode::kStopped, "stopped by a signal before all ranks had come"};
}

std::string encode_error(const Error& error) {
  return fmt::format("{}\n{}\n{}\n{}\n{}",
                     static_cast<int>(error.code()),
                     static_cast<int>(error.remedy()),
                     error.what(),
                     error.why(),
                     error.hint());
}

Error decode_error(const std::string& text) {
  std::vector<std::string_view> lines = split_words(text, '\n');
  lines.resize(5);
  const auto remedy = parse_int(lines[1]).value_or(0);
  const bool is_remedy = 0 <= remedy && remedy <= static_cast<int>(kLastRemedy);
  return {failure_code(parse_int(lines[0]).value_or(0)),
          without_controls(lines[2]),
          without_controls(lines[3]),
          without_controls(lines[4]),
          is_remedy ? static_cast<Remedy>(remedy) : Remedy::kNone};
}

}  // namespace lockstep::comm::tcp
