#include "comm/tcp/meeting.h"

#include <fstream>
#include <span>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>

#include "comm/operation.h"
#include "comm/sockets.h"
#include "comm/tcp/host_meeting.h"
#include "comm/tcp/join_meeting.h"
#include "core/digest.h"
#include "core/error.h"
#include "core/first_few.h"

namespace lockstep::comm::tcp {
namespace {

EnvironmentError no_way(int rank, size_t peer, const std::string& why) {
  return EnvironmentError(fmt::format("rank {} cannot reach rank {}", rank, peer),
                          why,
                          "let TCP connections between the ranks' hosts pass the firewall");
}

// A rank that rank 0 sees on its own loopback has rank 0's address, as other hosts know it.
Address address_of(const RankAddress& entry, const Address& rank_0, bool same_host) {
  const Address address(entry.address, static_cast<uint16_t>(entry.port));
  return address.is_loopback() && !same_host ? rank_0.with_port(address.port()) : address;
}

void connect_below(JoinedMeeting& from, int rank, Clock::time_point deadline) {
  const RankTable& table = from.meeting.table;
  const Address rank_0 = Address::of_peer(from.meeting.sockets[0].get());
  const uint64_t host = table.ranks[static_cast<size_t>(rank)].host;
  for (size_t peer = 1; peer < static_cast<size_t>(rank); ++peer) {
    const RankAddress& entry = table.ranks[peer];
    std::string problem;
    UniqueFd socket = connect_to(address_of(entry, rank_0, entry.host == host), deadline, problem);
    if (!socket.valid()) throw no_way(rank, peer, problem);
    const Hello hello = {
        .key = table.secret, .rank = rank, .size = static_cast<int>(table.ranks.size())};
    if (!send_all(socket.get(), std::as_bytes(std::span(&hello, 1)), deadline)) {
      throw no_way(rank, peer, "it closed the connection");
    }
    from.meeting.sockets[peer] = std::move(socket);
  }
}

void accept_above(JoinedMeeting& from, int rank, Clock::time_point deadline, const Note& note) {
  Meeting& meeting = from.meeting;
  const int rank_0 = meeting.sockets[0].get();
  const int size = static_cast<int>(meeting.sockets.size());
  RankListener listener(std::move(from.listener), meeting.table.secret, note);
  for (int missing = size - 1 - rank; missing > 0;) {
    const auto left = time_left(deadline);
    if (left.count() == 0) {
      std::vector<int> ranks;
      for (int peer = rank + 1; peer < size; ++peer) {
        if (!meeting.sockets[static_cast<size_t>(peer)].valid()) ranks.push_back(peer);
      }
      throw CommError(
          fmt::format("rank {} was not reached by rank {}", rank, first_few(ranks)),
          "all ranks had met at rank 0, then no connection came" + listener.rejections(),
          "let TCP connections between the ranks' hosts pass the firewall");
    }
    if (is_closed(rank_0)) {  // it notices when a rank does not come this far
      constexpr int kGone = 0;
      throw lost_peer_error("the meeting", rank, {&kGone, 1});
    }
    for (JoiningRank& accepted : listener.accept(std::min(left, std::chrono::milliseconds(200)))) {
      const int peer = accepted.hello.rank;
      if (peer <= rank || peer >= size) continue;
      UniqueFd& socket = meeting.sockets[static_cast<size_t>(peer)];
      if (socket.valid()) continue;
      socket = std::move(accepted.socket);
      --missing;
    }
  }
}

}  // namespace

Peers meet(const MeetingPlace& place, int rank, int size, const MeetingOptions& options) {
  JoinedMeeting from;
  if (rank == 0) {
    from.meeting = host_meeting(place, size, options);
  } else {
    from = join_meeting(place, rank, size, options);
    const Clock::time_point deadline = Clock::now() + options.timeout;
    connect_below(from, rank, deadline);
    accept_above(from, rank, deadline, options.note);
  }
  Peers peers;
  peers.sockets = std::move(from.meeting.sockets);
  for (const RankAddress& entry : from.meeting.table.ranks) peers.hosts.push_back(entry.host);
  return peers;
}

uint64_t host_sharing_memory() {
  Digest digest;
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(boot, id);
  digest.update(id);
  // Ranks pass memory through sockets, which a network namespace does not let through.
  struct stat network{};
  if (::stat("/proc/self/ns/net", &network) == 0) {
    digest.update(static_cast<uint64_t>(network.st_ino));
  }
  return digest.value();
}

}  // namespace lockstep::comm::tcp
