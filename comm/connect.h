// Makes the communicator of a launcher's ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "comm/launch.h"
#include "comm/operation.h"
#include "core/communicator.h"

#pragma GCC visibility push(default)
namespace lockstep::comm {

// Transports between ranks.
enum class Transport : uint8_t {
  kAuto,  // shared memory where all ranks run on one host and can map the same memory, else that
          // through which they met: MPI or TCP
  kShm,
  kMpi,
  kTcp,
};

struct ConnectOptions {
  std::chrono::milliseconds stall_abort = kDefaultStallAbort;
  Transport transport = Transport::kAuto;
  // Without MPI: how long ranks wait for those that have not come yet. `tell` reports on the wait,
  // and `stop` may end it.
  std::chrono::milliseconds rendezvous_timeout = std::chrono::seconds(300);
  std::function<void(const std::string& text)> tell = {};
  std::function<bool()> stop = {};  // asked while they wait; true gives up
  // For ranks that are processes. A caller that ends with a barrier() gets an exception about such
  // a peer instead.
  LostAtEnd lost_at_end = {};
};

struct Connection {
  std::unique_ptr<Communicator> ranks;
  std::string_view transport;  // "none" for a lone rank, "shm", "mpi" or "tcp"
  std::string note;            // why kAuto did not take shared memory
  Launch launch;               // with the place of this rank on its host, as the ranks found it
};

// Ranks of several processes meet over TCP where `launch` has a meeting place, else through MPI,
// whichever transport they use later. If the program has started MPI, it is used and left running;
// otherwise it is started here and ends with the last connection. After an error of a rank, MPI is
// not ended, because MPI_Finalize waits for all peers. Call this from the thread that will use the
// result, and on all ranks in the same order. Errors: EnvironmentError for a launcher of another
// MPI, in a build without MPI, and for a transport that is not available; UsageError after the end
// of MPI; those of tcp::meet().
Connection connect(const Launch& launch, const ConnectOptions& options = {});

}  // namespace lockstep::comm
#pragma GCC visibility pop
