// NCCL as the rest of the program sees it: its own header stays in this folder. A build without it
// has comm/nccl_absent.cpp.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "comm/device_exchange.h"

namespace lockstep::comm::nccl {

// "2.28.9". The first call opens the library. Errors: EnvironmentError, in three lines, for an NCCL
// that is missing, is older than 2.18, or lacks a function, and in a build without it.
std::string version();

// NCCL refuses two ranks on one GPU; this says so before it is asked. `device`: the GPU's UUID, at
// most 63 characters. A collective call. Errors: EnvironmentError naming two ranks.
void check_devices_differ(Communicator& peers, std::string_view device);

// A collective call in which the ranks meet in NCCL; the calling thread's device becomes this
// rank's. What it returns must outlive the exchanges that it makes, and graphs of theirs. Errors:
// as version(); EnvironmentError when NCCL refuses; CommError when the ranks do not all come within
// `deadline`.
MakeDeviceExchange connect(Communicator& peers, std::chrono::milliseconds deadline);

}  // namespace lockstep::comm::nccl
