#include "comm/tcp/join_meeting.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "comm/seconds.h"
#include "comm/sockets.h"
#include "comm/tcp/meeting_file.h"
#include "comm/tcp/socket_owner.h"
#include "core/digest.h"
#include "core/errno_text.h"
#include "core/error.h"
#include "core/words.h"

namespace lockstep::comm::tcp {
namespace {

using namespace std::chrono_literals;

constexpr Clock::duration kAnswerTime = 5s;  // of rank 0, which only waits for ranks
constexpr Clock::duration kConnectTime = 3s;

// Addresses that may be rank 0's, and the key that it expects.
struct Candidates {
  std::vector<Address> addresses;
  uint64_t key = 0;
};

Candidates find_candidates(const MeetingPlace& place, std::string& problem) {
  Candidates candidates;
  if (place.file.empty()) {
    candidates.key = digest(std::as_bytes(std::span(place.token)));
    for (const uint16_t port : place.ports) {
      const std::vector<Address> found = resolve(place.host, port, problem);
      candidates.addresses.insert(candidates.addresses.end(), found.begin(), found.end());
    }
    return candidates;
  }
  const std::optional<MeetingNotice> notice = read_meeting_file(place.file, problem);
  if (!notice) return candidates;
  candidates.key = notice->key;
  for (const Address& address : notice->addresses) {
    const bool reaches = !address.is_loopback() || notice->host == host_sharing_memory();
    if (reaches) candidates.addresses.push_back(address);
  }
  return candidates;
}

// Listens where ranks that reach this one's rank 0 should come: on the loopback alone where all
// ranks are bound to it, else on every address.
UniqueFd listen_for_ranks(const MeetingPlace& place, int socket) {
  const Address mine = Address::of_socket(socket);
  const bool is_local = place.host == mine.host() || place.host == "localhost";
  UniqueFd listener = listen_at(is_local && mine.is_loopback() ? mine.with_port(0)
                                                               : Address::any(mine.family(), 0));
  if (listener.valid()) return listener;
  throw EnvironmentError("a rank cannot listen for others", errno_text());
}

bool is_sound(const Reply& reply, int size) {
  if (reply.magic != Reply::kMagic) return false;
  switch (reply.kind) {
    case Reply::Kind::kWelcome:
      return reply.bytes == 0;
    case Reply::Kind::kRefused:
    case Reply::Kind::kFailed:
      return reply.bytes <= kMaxReasonBytes;
    case Reply::Kind::kRankTable:
      return reply.bytes == sizeof(uint64_t) + static_cast<size_t>(size) * sizeof(RankAddress);
  }
  return false;
}

struct Answer {
  Reply::Kind kind = Reply::Kind::kRefused;
  std::string content;
};

// Nothing where rank 0, or what stands there, ends or says something else.
std::optional<Answer> receive_answer(int socket, int size, Clock::time_point deadline) {
  Reply reply;
  if (!receive_all(socket, std::as_writable_bytes(std::span(&reply, 1)), deadline)) return {};
  if (!is_sound(reply, size)) return {};
  Answer answer = {reply.kind, std::string(reply.bytes, '\0')};
  if (!receive_all(socket, std::as_writable_bytes(std::span(answer.content)), deadline)) return {};
  return answer;
}

class Joiner {
 public:
  Joiner(const MeetingPlace& place, int rank, int size, const MeetingOptions& options)
      : place_(place),
        rank_(rank),
        size_(size),
        timeout_(options.timeout),
        stop_(options.stop),
        deadline_(Clock::now() + options.timeout) {}

  JoinedMeeting run() {
    auto pause = 20ms;
    while (true) {
      const Candidates candidates = find_candidates(place_, problem_);
      for (const Address& address : candidates.addresses) {
        if (std::optional<JoinedMeeting> joined = try_address(address, candidates.key)) {
          return std::move(*joined);
        }
      }
      check_stop();
      if (Clock::now() >= deadline_) throw nobody_there();
      std::this_thread::sleep_for(std::min(pause, time_left(deadline_)));
      pause = std::min(2 * pause, 500ms);
    }
  }

 private:
  CommError nobody_there() const {
    return CommError(fmt::format("rank {} did not find rank 0", rank_),
                     fmt::format("it looked at {} for {} s: {}",
                                 to_string(place_),
                                 seconds_of(timeout_),
                                 problem_.empty() ? "nobody answered" : problem_),
                     "see whether rank 0 was started, with the same place to meet, and whether a "
                     "firewall is between");
  }

  void check_stop() const {
    if (stop_ && stop_()) throw stopped_error();
  }

  Clock::time_point soon(Clock::duration time) const {
    return std::max(Clock::now() + 1ms, std::min(Clock::now() + time, deadline_ + 1s));
  }

  std::optional<JoinedMeeting> try_address(const Address& address, uint64_t key) {
    JoinedMeeting joined;
    UniqueFd socket = connect_to(address, soon(kConnectTime), problem_);
    if (!socket.valid()) return std::nullopt;
    joined.listener = listen_for_ranks(place_, socket.get());
    const Hello hello = {.key = key,
                         .host = host_sharing_memory(),
                         .rank = rank_,
                         .size = size_,
                         .port = Address::of_socket(joined.listener.get()).port()};
    const bool said =
        send_all(socket.get(), std::as_bytes(std::span(&hello, 1)), soon(kAnswerTime));
    const std::optional<Answer> answer =
        said ? receive_answer(socket.get(), size_, soon(kAnswerTime)) : std::nullopt;
    if (answer && belongs_to_another_user(socket.get())) {
      problem_ = fmt::format("{} belongs to another user of this host", address.to_string());
      return std::nullopt;
    }
    if (!answer || answer->kind == Reply::Kind::kRankTable) {
      problem_ = fmt::format("{} does not answer as a rank 0 of Lockstep", address.to_string());
      return std::nullopt;
    }
    if (answer->kind == Reply::Kind::kRefused) {
      problem_ = fmt::format("{}: {}", address.to_string(), printable(answer->content, 200));
      return std::nullopt;
    }
    if (answer->kind == Reply::Kind::kFailed) throw decode_error(answer->content);
    joined.meeting = wait_for_table(std::move(socket));
    return joined;
  }

  // Rank 0 may have begun to wait later than this rank: its time counts, and some for the way.
  Meeting wait_for_table(UniqueFd socket) const {
    const Clock::time_point end = Clock::now() + timeout_ + 10s;
    while (!wait_readable(socket.get(), std::min(end, Clock::now() + 200ms))) {
      check_stop();
      if (Clock::now() >= end) break;
    }
    const std::optional<Answer> answer = receive_answer(socket.get(), size_, end);
    if (answer && answer->kind == Reply::Kind::kFailed) throw decode_error(answer->content);
    if (!answer || answer->kind != Reply::Kind::kRankTable) {
      throw CommError(fmt::format("rank {} lost rank 0 before all ranks had come", rank_),
                      fmt::format("rank 0 at {} ended", Address::of_peer(socket.get()).to_string()),
                      "rank 0's own message says why");
    }
    Meeting meeting;
    meeting.table.ranks.resize(static_cast<size_t>(size_));
    std::memcpy(&meeting.table.secret, answer->content.data(), sizeof(uint64_t));
    std::memcpy(meeting.table.ranks.data(),
                answer->content.data() + sizeof(uint64_t),
                meeting.table.ranks.size() * sizeof(RankAddress));
    meeting.sockets.resize(meeting.table.ranks.size());
    meeting.sockets[0] = std::move(socket);
    return meeting;
  }

  const MeetingPlace& place_;
  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  const std::function<bool()> stop_;
  const Clock::time_point deadline_;
  std::string problem_;  // why the last try failed
};

}  // namespace

JoinedMeeting join_meeting(const MeetingPlace& place,
                           int rank,
                           int size,
                           const MeetingOptions& options) {
  return Joiner(place, rank, size, options).run();
}

}  // namespace lockstep::comm::tcp
