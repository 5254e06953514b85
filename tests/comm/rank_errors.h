// Errors of ranks on threads when their peers do not do their part.
#pragma once

#include <chrono>
#include <functional>

#include <gtest/gtest.h>

#include "comm/operation.h"
#include "core/communicator.h"
#include "core/error.h"

namespace lockstep::testing {

// The type of comm::spawn_ranks and spawn_mailbox_ranks.
using SpawnRanks = void(int ranks,
                        const std::function<void(Communicator& peers)>& body,
                        std::chrono::milliseconds stall_abort);

// Runs `body` on `ranks` ranks and returns the error with which it must end.
inline CommError error_of(SpawnRanks& spawn,
                          int ranks,
                          const std::function<void(Communicator&)>& body,
                          std::chrono::milliseconds stall_abort = comm::kDefaultStallAbort) {
  try {
    spawn(ranks, body, stall_abort);
  } catch (const CommError& error) {
    return error;
  }
  ADD_FAILURE() << "no CommError";
  return CommError("none");
}

}  // namespace lockstep::testing
