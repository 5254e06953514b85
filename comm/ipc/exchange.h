// Sums over ranks of values on GPUs, in memory that every rank's kernels reach.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/device_exchange.h"
#include "comm/ipc/peer_buckets.h"
#include "comm/ipc/watchdog.h"
#include "core/communicator.h"
#include "core/stream.h"

namespace lockstep::comm::ipc {

// For ranks that share a GPU, or whose GPUs are peers. The owner of a slice adds it from all ranks'
// buckets and writes the sum to all of them, in one pass of kernels/reduce/peer_sum, as comm/shared
// does it, on a stream of its own; nothing is copied. Streams of different processes wait for each
// other's events, and no kernel does: on one GPU it would keep out the one that it waits for. Such
// a wait is for what was recorded by then, so the hosts tell each other when they have recorded:
//   start()    the gradients' event is recorded, and this said without waiting
//   advance()  when all have said so: the stream waits for their events, sums, records an event
//   wait()     when all have come as far with all that is under way: `compute` waits for those
// advance() makes no call of the communicator, so that all ranks make theirs in one order. An
// event is recorded again when all ranks have long asked for its last record: they meet in between.
// While it lives, waits for the device are watched. Its end waits for that of the others.
class IpcExchange : public DeviceExchange {
 public:
  // A collective call; the arguments must outlive this, `buckets` are all that will be summed.
  // `deadline` is the ranks'. Errors: EnvironmentError, the same on all ranks, where one cannot
  // reach another's memory; CommError.
  IpcExchange(Communicator& peers,
              Stream& compute,
              std::span<const Bucket> buckets,
              std::chrono::milliseconds deadline);
  IpcExchange(const IpcExchange&) = delete;
  IpcExchange& operator=(const IpcExchange&) = delete;
  ~IpcExchange() override;

  // Errors: also UsageError for other algorithms than kTree.
  std::unique_ptr<Work> start(const AllReduce& what) override;

 private:
  class Sum;
  struct Route {
    PeerBucket bucket;
    Tensor signal;                    // summed by the hosts: they have come that far
    std::unique_ptr<Work> announced;  // all ranks' gradients; null before and after
    bool launched = false;            // this rank's part
  };

  void launch_what_is_ready();
  void launch(Route& route);
  void launch_all(std::string_view label);

  Communicator& peers_;
  Stream& compute_;
  Stream exchange_;
  std::vector<Route> routes_;      // one a bucket
  std::vector<Route*> under_way_;  // in the order of their starts
  Watchdog watchdog_;
  const int exceptions_;  // under way when this was made
};

// Tries whether ranks can exchange gradients so, before a run depends on it. Empty when each rank's
// kernels may touch every rank's GPU and a sum that was tried came out right; else why not, the
// same text on all ranks. A collective call, after the device was chosen, of ranks of one host.
// Errors: CommError.
std::string obstacle(Communicator& peers, std::chrono::milliseconds deadline);

}  // namespace lockstep::comm::ipc
