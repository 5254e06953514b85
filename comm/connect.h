// Makes the communicator of a launcher's ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "comm/launch.h"
#include "comm/operation.h"
#include "core/communicator.h"

namespace lockstep::comm {

// Transports between ranks.
enum class Transport : uint8_t {
  kAuto,  // shared memory where all ranks run on one host and can map the same memory, else MPI
  kShm,
  kMpi,
};

struct ConnectOptions {
  std::chrono::milliseconds stall_abort = kDefaultStallAbort;
  Transport transport = Transport::kAuto;
};

struct Connection {
  std::unique_ptr<Communicator> ranks;
  std::string_view transport;  // "none" for a lone rank, "shm" or "mpi"
  std::string note;            // why kAuto did not take shared memory
};

// Ranks of several processes meet through MPI, whatever they use later. Call it once, from the
// thread that will use the result. An error after this ends the process with die(), not with
// exit(). Errors: EnvironmentError for a launcher that does not start MPI jobs or belongs to
// another MPI, in a build without MPI, and for kShm where it cannot be.
Connection connect(const Launch& launch, const ConnectOptions& options = {});

}  // namespace lockstep::comm
