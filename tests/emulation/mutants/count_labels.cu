// Counters: many threads add to a few locations by atomics, first in shared memory, then in device
// memory.
#include "tests/emulation/mutants/mutant.h"

namespace lockstep::emulation::mutants {
namespace {

enum class Bug {
  kNone,
  kPlainAddShared,
  kPlainAddDevice,
  kPlainReadOfCounter,
  kSharedNotCleared,
  kDeviceNotCleared,
  kLabelOutOfRange,
  kMissingBarrierAfterClear,
  kMissingBarrierBeforeFlush,
};

constexpr int kThreads = 64, kLabels = 10;

// counts[l] += the number of `labels` equal to l; total += the number of all labels.
template <Bug kBug>
__global__ void __launch_bounds__(kThreads)
    count_labels(const int* labels, int* counts, int* total, int* seen, int count) {
  LS_DYNAMIC_SHARED(int, block_counts);
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (kBug != Bug::kSharedNotCleared) {
    if (thread < kLabels) block_counts[thread] = 0;
  }
  if constexpr (kBug != Bug::kMissingBarrierAfterClear) __syncthreads();
  const int i = static_cast<int>(blockIdx.x) * kThreads + thread;
  if (i < count) {
    if constexpr (kBug == Bug::kPlainAddShared) {
      block_counts[labels[i]] += 1;
    } else {
      atomicAdd(&block_counts[labels[i]], 1);
    }
  }
  if constexpr (kBug != Bug::kMissingBarrierBeforeFlush) __syncthreads();
  if (thread < kLabels) {
    if constexpr (kBug == Bug::kPlainAddDevice) {
      counts[thread] += block_counts[thread];
    } else {
      atomicAdd(&counts[thread], block_counts[thread]);
    }
    atomicAdd(total, block_counts[thread]);
  }
  if constexpr (kBug == Bug::kPlainReadOfCounter) seen[blockIdx.x] = *total;
}

template <Bug kBug>
bool gives_right_result() {
  constexpr int kCount = 150;
  std::vector<int> labels(kCount), want(kLabels, 0);
  for (size_t i = 0; i < kCount; ++i) {
    labels[i] = static_cast<int>(i * i % 7 + i % 4);
    ++want[static_cast<size_t>(labels[i])];
  }
  if constexpr (kBug == Bug::kLabelOutOfRange) labels[7] = kLabels;
  DeviceArray<int> device_labels(labels), seen(3);
  DeviceArray<int> cleared(std::vector<int>(kLabels, 0)), unwritten(kLabels);
  DeviceArray<int> total(std::vector<int>{0});
  DeviceArray<int>& counts = kBug == Bug::kDeviceNotCleared ? unwritten : cleared;
  cuda::launch(stream(),
               "count_labels",
               {3, kThreads, kLabels * sizeof(int)},
               count_labels<kBug>,
               device_labels.data(),
               counts.data(),
               total.data(),
               seen.data(),
               kCount);
  return counts.download() == want && total.download() == std::vector<int>{kCount};
}

const Family family(
    "count_labels",
    {{"none", gives_right_result<Bug::kNone>},
     {"plain add to shared memory", gives_right_result<Bug::kPlainAddShared>},
     {"plain add to device memory", gives_right_result<Bug::kPlainAddDevice>},
     {"plain read of a counter", gives_right_result<Bug::kPlainReadOfCounter>},
     {"shared memory not cleared", gives_right_result<Bug::kSharedNotCleared>},
     {"device memory not cleared", gives_right_result<Bug::kDeviceNotCleared>},
     {"label out of range", gives_right_result<Bug::kLabelOutOfRange>},
     {"missing barrier after clear", gives_right_result<Bug::kMissingBarrierAfterClear>},
     {"missing barrier before flush", gives_right_result<Bug::kMissingBarrierBeforeFlush>}});

}  // namespace
}  // namespace lockstep::emulation::mutants
