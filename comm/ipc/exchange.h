// Sums values on GPUs over ranks, in memory that every rank's kernels can access.
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

// For ranks that share a GPU, or whose GPUs are peers. As in comm/shared, the owner of a slice adds
// it from all ranks' buckets and writes the sum to all of them: in one pass of
// kernels/reduce/peer_sum, on a stream of its own, without copies. Streams of different processes
// wait for each other's events. Kernels do not wait: on a shared GPU, a waiting kernel would keep
// out the one that it waits for. A stream waits only for what the event has recorded by then, so
// the hosts tell each other when they have recorded:
//   start()    records the gradients' event and announces it without waiting
//   advance()  once all ranks have announced theirs, lets the stream wait for them, sum, and record
//              an event
//   wait()     once all ranks have done so for everything under way, lets `compute` wait for those
// advance() makes no call of the communicator, so that all ranks make theirs in one order. An event
// is recorded again only after all ranks have asked for its last record, because they meet in
// between. While this lives, waits for the device are watched. Its destructor waits for that of the
// other ranks.
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
    Tensor signal;                    // summed by the hosts, to tell each other how far they are
    std::unique_ptr<Work> announced;  // all ranks' gradients; null before and after
    bool launched = false;            // this rank's part
  };

  void launch_what_is_ready();
  void launch(Route& route);
  void launch_all(std::string_view label);

  Communicator& peers_;
  Stream& compute_;
  Stream exchange_;
  std::vector<Route> routes_;      // one per bucket
  std::vector<Route*> under_way_;  // in the order of their starts
  Watchdog watchdog_;
  const int exceptions_;  // under way when this was made
};

// Tests whether ranks can exchange gradients this way, before a run depends on it. Returns "" when
// each rank's kernels can access every rank's GPU and a trial sum came out right; else why not, the
// same text on all ranks. A collective call of ranks of one host, after their devices were chosen.
// Errors: CommError.
std::string why_unavailable(Communicator& peers, std::chrono::milliseconds deadline);

}  // namespace lockstep::comm::ipc
