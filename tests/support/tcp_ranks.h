// Ranks as threads that exchange messages through sockets: TcpTransport without a rendezvous.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "comm/operation.h"
#include "core/communicator.h"
#include "core/unique_fd.h"

namespace lockstep::testing {

// mesh[a][b]: rank a's end of its connection to rank b; mesh[a][a] is empty.
std::vector<std::vector<UniqueFd>> socket_mesh(int ranks);

// Calls body(communicator) on `ranks` threads and returns when all are done. If a rank throws or
// returns, the others' waits for it soon fail; the earliest error is rethrown. Errors: CommError
// when a rank waits for another for longer than `stall_abort`.
void spawn_tcp_ranks(int ranks,
                     const std::function<void(Communicator& peers)>& body,
                     std::chrono::milliseconds stall_abort = comm::kDefaultStallAbort);

}  // namespace lockstep::testing
