#include "comm/ipc/trial.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "comm/gather.h"
#include "comm/ipc/exchange.h"
#include "core/cuda/device.h"
#include "core/cuda/ipc.h"
#include "core/error.h"
#include "core/transfer.h"

namespace lockstep::comm::ipc {
namespace {

void check_reach(const std::vector<std::string>& devices) {
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    if (cuda::can_reach(devices[rank])) continue;
    throw EnvironmentError(
        fmt::format("its kernels cannot reach the memory of rank {}'s GPU", rank),
        fmt::format("{} is not visible to it or no peer of its own, {}",
                    devices[rank],
                    cuda::device_properties().uuid));
  }
}

// Whole numbers, so that the sum is exact; of memory that CUDA mapped wrongly it is another.
bool sums_right(Communicator& peers, std::chrono::milliseconds deadline) {
  const int64_t ranks = peers.size();
  Bucket bucket;
  bucket.values = Tensor::zeros({100 * ranks}, Dtype::kF32, Device::kCuda);
  bucket.label = "the trial of CUDA IPC";
  Tensor mine = Tensor::empty(bucket.values.shape(), Dtype::kF32);
  for (int64_t i = 0; i < mine.numel(); ++i) {
    mine.data<float>()[i] = static_cast<float>(i + peers.rank());
  }
  overwrite(mine, bucket.values);
  Stream compute(Device::kCuda);
  IpcExchange exchange(peers, compute, std::span(&bucket, 1), deadline);
  exchange.start({.values = bucket.values, .label = bucket.label})->wait();
  const Tensor sum = to_cpu(compute, bucket.values);
  for (int64_t i = 0; i < sum.numel(); ++i) {
    const int64_t want = ranks * i + ranks * (ranks - 1) / 2;
    if (sum.data<float>()[i] != static_cast<float>(want)) return false;
  }
  return true;
}

}  // namespace

std::string obstacle(Communicator& peers, std::chrono::milliseconds deadline) {
  const std::vector<std::string> devices = gather_texts(peers, cuda::device_properties().uuid);
  std::string unreachable = attempt(peers, [&] { check_reach(devices); });
  if (!unreachable.empty()) return unreachable;
  bool right = false;
  try {
    right = sums_right(peers, deadline);
  } catch (const EnvironmentError& refused) {  // on all ranks alike
    return refused.why();
  }
  return attempt(peers, [&] {
    if (!right) throw EnvironmentError("a sum over CUDA IPC came out wrong");
  });
}

}  // namespace lockstep::comm::ipc
