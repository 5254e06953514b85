// NCCL for the rest of the program, which does not include NCCL's header. A build without NCCL has
// comm/nccl_absent.cpp.
#pragma once

#include <chrono>
#include <string>

#include "comm/device_exchange.h"

namespace lockstep::comm::nccl {

// "2.28.9". The first call opens the library. Errors: EnvironmentError, in three lines, for an NCCL
// that is missing, is older than 2.18, or lacks a function, and in a build without it.
std::string version();

// A collective call in which the ranks meet in NCCL; the calling thread's device becomes this
// rank's. `peers` must outlive the result, which must outlive the exchanges that it makes, and the
// graphs that they are recorded in. Errors: as version(); EnvironmentError when NCCL refuses;
// CommError when the ranks do not all come within `deadline`.
MakeDeviceExchange connect(Communicator& peers, std::chrono::milliseconds deadline);

}  // namespace lockstep::comm::nccl
