// Ranks as threads that exchange messages through mailboxes: MessageCommunicator without MPI.
#pragma once

#include <chrono>
#include <functional>

#include "comm/operation.h"
#include "core/communicator.h"

namespace lockstep::testing {

// Calls body(communicator) on `ranks` threads and returns when all are done. If a rank throws or
// returns, the others' waits for it fail at once; the earliest error is rethrown. Errors: CommError
// when a rank waits for another for longer than `stall_abort`.
void spawn_mailbox_ranks(int ranks,
                         const std::function<void(Communicator& peers)>& body,
                         std::chrono::milliseconds stall_abort = comm::kDefaultStallAbort);

}  // namespace lockstep::testing
