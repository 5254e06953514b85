// From what the launcher said to a communicator.
#pragma once

#include <chrono>
#include <memory>

#include "comm/direct_communicator.h"
#include "comm/launch.h"

namespace lockstep::comm {

// MPI's where there are several ranks, else a SingleCommunicator. Call it once, from the thread
// that will use the result. An error after this ends the process with die(), not with exit().
// Errors: EnvironmentError for a launcher that does not start MPI jobs or belongs to another MPI.
std::unique_ptr<Communicator> connect(const Launch& launch,
                                      std::chrono::milliseconds stall_abort = kDefaultStallAbort);

}  // namespace lockstep::comm
