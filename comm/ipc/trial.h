// Tries whether ranks can exchange gradients over CUDA IPC, before a run depends on it.
#pragma once

#include <chrono>
#include <string>

#include "core/communicator.h"

namespace lockstep::comm::ipc {

// Empty when each rank's kernels may touch every rank's GPU and a sum that was tried came out
// right; else why not, the same text on all ranks. A collective call, after the device was chosen,
// of ranks of one host. Errors: CommError.
std::string obstacle(Communicator& peers, std::chrono::milliseconds deadline);

}  // namespace lockstep::comm::ipc
