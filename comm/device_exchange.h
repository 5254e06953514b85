// Sums values on GPUs over ranks.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "comm/bucket.h"
#include "comm/schedule.h"
#include "core/communicator.h"
#include "core/stream.h"
#include "core/tensor.h"

#pragma GCC visibility push(default)
namespace lockstep::comm {

// Slices begin at multiples of 256 bytes, so that kernels and links move whole packs. Where the
// slices are cut changes no bit of a tree sum, because each element has a tree of its own.
inline int64_t unit_of(const Tensor& values) {
  return 256 / static_cast<int64_t>(size_of(values.dtype()));
}

// Shape: values (N). May be shorter than others, or empty.
inline Tensor part_of_rank(const Tensor& values, int ranks, int rank) {
  const Slice slice = slice_of_units(values.numel(), unit_of(values), ranks, rank);
  return values.slice(slice.begin, slice.count);
}

// Thread safety: none.
class DeviceExchange {
 public:
  DeviceExchange() = default;
  DeviceExchange(const DeviceExchange&) = delete;
  DeviceExchange& operator=(const DeviceExchange&) = delete;
  virtual ~DeviceExchange() = default;

  // Starts the sum after the work that the compute stream has been given so far; work that it is
  // given after wait() sees the result. `what.values` is the same tensor from call to call, with at
  // most one sum under way. Errors: CommError; UsageError for an algorithm that it does not have.
  virtual std::unique_ptr<Work> start(const AllReduce& what) = 0;
  // Peers for other exchanges between the ranks' GPUs; null where it offers none. Lives as long as
  // this.
  virtual DevicePeers* peers() { return nullptr; }
};

// A collective call. The exchange may keep its arguments.
using MakeDeviceExchange = std::function<std::unique_ptr<DeviceExchange>(
    Communicator& peers, Stream& compute, std::span<const Bucket> buckets)>;

// A collective call. NCCL refuses two ranks on one GPU; this says so before NCCL is asked.
// `device`: the GPU's UUID, at most 63 characters. Errors: EnvironmentError naming two ranks.
void check_devices_differ(Communicator& peers, std::string_view device);

}  // namespace lockstep::comm
#pragma GCC visibility pop
