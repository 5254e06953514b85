#include "comm/connect.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "comm/gather.h"
#include "comm/messages/mpi_communicator.h"
#include "comm/shared/process_ranks.h"
#include "comm/single.h"
#include "comm/tcp/meeting.h"
#include "comm/tcp/tcp_communicator.h"
#include "core/error.h"

namespace lockstep::comm {
namespace {

// Finds how many ranks this host has and which of them this is, unless the launcher gave that.
void place_on_host(const std::vector<uint64_t>& hosts, Launch& launch) {
  const auto rank = static_cast<ptrdiff_t>(launch.rank);
  const uint64_t host = hosts[static_cast<size_t>(rank)];
  launch.local_size = static_cast<int>(std::ranges::count(hosts, host));
  if (launch.has_local_rank) return;
  launch.local_rank = static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank, host));
}

Connection choose_transport(std::unique_ptr<MessageCommunicator> messages,
                            std::string_view name,
                            const Launch& launch,
                            const ConnectOptions& options) {
  if (options.transport == Transport::kMpi || options.transport == Transport::kTcp) {
    return {std::move(messages), name, {}, launch};
  }
  SharedRanks shared = share_memory(messages, launch, options.stall_abort);
  if (shared.ranks) return {std::move(shared.ranks), "shm", {}, launch};
  if (options.transport == Transport::kShm) {
    throw EnvironmentError("the ranks cannot share memory",
                           shared.problem,
                           "let them exchange messages, which works between hosts too",
                           Remedy::kMpi);
  }
  return {std::move(messages), name, shared.problem, launch};
}

Connection meet_over_tcp(Launch launch, const MeetingPlace& place, const ConnectOptions& options) {
  if (options.transport == Transport::kMpi) {
    throw EnvironmentError("the ranks did not meet through MPI",
                           fmt::format("they meet at {}", to_string(place)),
                           fmt::format("mpirun -np {} PROGRAM ARGUMENTS", launch.size),
                           Remedy::kMpi);
  }
  tcp::Peers peers = tcp::meet(
      place,
      launch.rank,
      launch.size,
      {.timeout = options.rendezvous_timeout, .note = options.tell, .stop = options.stop});
  place_on_host(peers.hosts, launch);
  auto messages = std::make_unique<tcp::TcpCommunicator>(launch.rank,
                                                         std::move(peers.sockets),
                                                         shares_cores(launch),
                                                         options.stall_abort,
                                                         options.lost_at_end);
  return choose_transport(std::move(messages), "tcp", launch, options);
}

}  // namespace

Connection connect(const Launch& launch, const ConnectOptions& options) {
  if (launch.size == 1) return {std::make_unique<SingleCommunicator>(), "none", {}, launch};
  if (launch.place) return meet_over_tcp(launch, *launch.place, options);
  if (options.transport == Transport::kTcp) {
    throw EnvironmentError("the ranks have no place to meet over TCP",
                           "the launcher's MPI connects them",
                           "start them with torchrun, or let them talk through MPI");
  }
  auto messages = std::make_unique<MpiCommunicator>(
      std::make_unique<MpiSession>(launch), options.stall_abort, options.lost_at_end);
  Launch found = launch;
  found.rank = messages->rank();
  found.size = messages->size();
  // These do not tell how many ranks a host has.
  const bool is_pmix = launch.launcher == Launcher::kSlurm || launch.launcher == Launcher::kPmix;
  if (is_pmix) place_on_host(gather_value(*messages, tcp::host_sharing_memory()), found);
  return choose_transport(std::move(messages), "mpi", found, options);
}

}  // namespace lockstep::comm
