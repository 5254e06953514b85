// Ranks as threads of one process, for tests and ThreadSanitizer.
#pragma once

#include <chrono>
#include <functional>

#include "comm/operation.h"
#include "core/communicator.h"

namespace lockstep::comm {

// Calls body(communicator) on `ranks` threads and returns when all are done. The ranks share memory
// by the protocol of comm/shared/, as processes of one host do. A rank that throws or returns makes
// the others' waits for it fail at once; the error that came first in time is rethrown.
// Errors: CommError when a rank waits for another for longer than `stall_abort`.
void spawn_ranks(int ranks,
                 const std::function<void(Communicator& peers)>& body,
                 std::chrono::milliseconds stall_abort = kDefaultStallAbort);

}  // namespace lockstep::comm
