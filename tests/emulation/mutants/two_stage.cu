// Like the reductions over a whole tensor: one partial sum per block, and a second kernel that adds
// them.
#include "tests/emulation/mutants/mutant.h"

namespace lockstep::emulation::mutants {
namespace {

enum class Bug {
  kNone,
  kAllThreadsWrite,
  kBuffersTooSmall,
  kSumsTooMany,
  kStagesSwapped,
  kOneKernel,
  kBlocksSkipped,
  kGridStrideMissing,
};

constexpr int kThreads = 64, kBlocks = 6;

template <Bug kBug>
__device__ float block_sum(float value, float* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  return shared[0];
}

template <Bug kBug>
__global__ void __launch_bounds__(kThreads)
    partial_sums(const float* in, float* partials, float* total, int count) {
  __shared__ float shared[kThreads];
  constexpr int kStride = kBug == Bug::kGridStrideMissing ? kThreads : kThreads * kBlocks;
  float sum = 0;
  for (int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x); i < count;
       i += kStride)
    sum += in[i];
  sum = block_sum<kBug>(sum, shared);
  if (threadIdx.x == 0 || kBug == Bug::kAllThreadsWrite) partials[blockIdx.x] = sum;
  if (kBug == Bug::kOneKernel && blockIdx.x == 0 && threadIdx.x == 0) {
    *total = 0;
    for (int i = 0; i < kBlocks; ++i) *total += partials[i];
  }
}

template <Bug kBug>
__global__ void __launch_bounds__(kThreads) sum_partials(const float* partials, float* total) {
  __shared__ float shared[kThreads];
  constexpr unsigned kCount = kBug == Bug::kSumsTooMany     ? kBlocks + 1
                              : kBug == Bug::kBlocksSkipped ? kBlocks - 1
                                                            : kBlocks;
  const float sum = block_sum<kBug>(threadIdx.x < kCount ? partials[threadIdx.x] : 0, shared);
  if (threadIdx.x == 0) *total = sum;
}

template <Bug kBug>
bool gives_right_result() {
  const std::vector<float> values = small_numbers(1000, 5);
  float want = 0;
  for (const float value : values) want += value;
  DeviceArray<float> in(values), partials(kBug == Bug::kBuffersTooSmall ? kBlocks - 1 : kBlocks);
  DeviceArray<float> total(1);
  const auto second = [&] {
    cuda::launch(
        stream(), "sum_partials", {1, kThreads}, sum_partials<kBug>, partials.data(), total.data());
  };
  if constexpr (kBug == Bug::kStagesSwapped) second();
  cuda::launch(stream(),
               "partial_sums",
               {kBlocks, kThreads},
               partial_sums<kBug>,
               in.data(),
               partials.data(),
               total.data(),
               1000);
  if constexpr (kBug != Bug::kStagesSwapped && kBug != Bug::kOneKernel) second();
  return total.download() == std::vector<float>{want};
}

const Family family("two_stage",
                    {{"none", gives_right_result<Bug::kNone>},
                     {"all threads write the sum", gives_right_result<Bug::kAllThreadsWrite>},
                     {"buffer too small", gives_right_result<Bug::kBuffersTooSmall>},
                     {"one partial sum too many", gives_right_result<Bug::kSumsTooMany>},
                     {"stages swapped", gives_right_result<Bug::kStagesSwapped>},
                     {"both stages in one kernel", gives_right_result<Bug::kOneKernel>},
                     {"a block left out", gives_right_result<Bug::kBlocksSkipped>},
                     {"stride of one block", gives_right_result<Bug::kGridStrideMissing>}});

}  // namespace
}  // namespace lockstep::emulation::mutants
