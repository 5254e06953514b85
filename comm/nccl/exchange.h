// Sums over ranks, gathered rows and broadcasts between GPUs by NCCL: nothing passes through the
// host, and nothing waits for it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "comm/device_exchange.h"
#include "comm/nccl/ranks.h"
#include "comm/nccl/watchdog.h"
#include "core/cuda/stream.h"
#include "core/function_ref.h"

namespace lockstep::comm::nccl {

// Runs on a stream of its own, of high priority, beside what `compute` does next; events join the
// two. kTree: every rank sends slice j to rank j, which sums them by kernels/reduce/peer_sum, in
// the order that holds on every transport, and sends the sum to all. kRing: slices travel round the
// ranks, as comm/schedule.h says. kLibrary: NCCL's own all-reduce. May be recorded in a graph with
// the rest of a step. While it lives, waits for the device are watched.
// Memory: (W-1)/W of the largest bucket, for W ranks.
class NcclExchange : public DeviceExchange, public DevicePeers {
 public:
  // Both must outlive this. `buckets`: all that will be summed, of one dtype.
  NcclExchange(Ranks& ranks, Stream& compute, std::span<const Bucket> buckets);
  NcclExchange(const NcclExchange&) = delete;
  NcclExchange& operator=(const NcclExchange&) = delete;
  ~NcclExchange() override;

  // Errors: also UsageError for kStar.
  std::unique_ptr<Work> start(const AllReduce& what) override;
  DevicePeers* peers() override { return this; }
  // Each rank sends its rows to each.
  void gather_rows(std::span<const Tensor> mine,
                   std::span<const int64_t> first_rows,
                   std::span<Tensor> all) override;
  void broadcast(std::span<Tensor> tensors, int root) override;

 private:
  class Join;

  void sum_tree(Tensor& values, std::string_view label);
  void sum_ring(Tensor& values, std::string_view label);
  void send(const Tensor& from, int to);
  void receive(Tensor to, int from);
  // `body` gives the exchange stream work, after what the compute stream has been given. `done`
  // passes after it.
  void beside_compute(cuda::Event& done, std::string_view label, FunctionRef<void()> body);

  Ranks& ranks_;
  Stream& compute_;
  Stream exchange_;
  const int64_t row_;  // elements of the largest slice
  Tensor received_;    // (W-1, row), flat: the others' versions of this rank's slice
  cuda::Event ready_, gathered_, handed_out_;
  std::map<const std::byte*, cuda::Event> summed_;  // by the values' address
  Watchdog watchdog_;
  const int exceptions_;  // under way when this was made
};

}  // namespace lockstep::comm::nccl
