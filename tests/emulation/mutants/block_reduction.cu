// Like batch norm's statistics: a block sums the rows of its columns, by shuffles within a warp and
// through shared memory between warps. Then all threads use the sum, and the shared array is used a
// second time.
#include "tests/emulation/mutants/mutant.h"

namespace lockstep::emulation::mutants {
namespace {

enum class Bug {
  kNone,
  kMissingBarrier,
  kMissingBarrierBetweenUses,
  kDivergentBarrier,
  kTwoBarriers,
  kBarrierAfterReturn,
  kLaneNotInItsMask,
  kLaneOutsideMask,
  kLaneLeavesEarly,
  kDifferentShuffles,
  kBroadcastNeverWritten,
  kSharedIndexOutOfRange,
  kMissingShuffleStep,
  kWrongBlockSize,
};

constexpr int kThreads = 128, kWarps = kThreads / 32;

template <Bug kBug>
__device__ float warp_sum(float value) {
  constexpr unsigned kMask =
      kBug == Bug::kLaneNotInItsMask || kBug == Bug::kLaneOutsideMask ? 0x0fffffffU : 0xffffffffU;
  if constexpr (kBug == Bug::kLaneOutsideMask) {
    if (threadIdx.x % 32 >= 28) return value;
  }
  if constexpr (kBug == Bug::kLaneLeavesEarly) {
    if (threadIdx.x % 32 == 31) return value;
  }
  constexpr int kLast = kBug == Bug::kMissingShuffleStep ? 2 : 1;
  for (int offset = 16; offset >= kLast; offset /= 2) {
    if (kBug == Bug::kDifferentShuffles && threadIdx.x % 32 < 16) {
      value += __shfl_down_sync(kMask, value, offset);
    } else {
      value += __shfl_down_sync(kMask, value, offset);
    }
  }
  return value;
}

// Returns the block's sum to every thread. `partials` must no longer be in use.
template <Bug kBug>
__device__ float block_sum(float value, float* partials) {
  constexpr int kAssumedWarps = kBug == Bug::kWrongBlockSize ? 2 * kWarps : kWarps;
  value = warp_sum<kBug>(value);
  const unsigned warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0)
    partials[kBug == Bug::kSharedIndexOutOfRange ? warp + blockDim.x / 16 : warp] = value;
  if constexpr (kBug == Bug::kDivergentBarrier) {
    if (threadIdx.x < 32) __syncthreads();
  } else if constexpr (kBug == Bug::kTwoBarriers) {
    if (threadIdx.x < 32) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  } else if constexpr (kBug != Bug::kMissingBarrier) {
    __syncthreads();
  }
  float sum = 0;
  for (int i = 0; i < kAssumedWarps; ++i) sum += partials[i];
  return sum;
}

// centered[r][c] = (in[r][c] - mean of column c) * scale[c]; spread[c] = sum of its squares. One
// block per column.
template <Bug kBug>
__global__ void __launch_bounds__(kThreads) center_columns(
    const float* in, const float* scale, float* centered, float* spread, int rows, int columns) {
  __shared__ float partials[2 * kWarps];
  __shared__ float column_scale;
  const int column = static_cast<int>(blockIdx.x);
  const int first_row = static_cast<int>(threadIdx.x);
  if constexpr (kBug == Bug::kBarrierAfterReturn) {
    if (first_row >= rows) return;
  }
  if constexpr (kBug != Bug::kBroadcastNeverWritten) {
    if (threadIdx.x == 0) column_scale = scale[column];
  }
  float sum = 0;
  for (int row = first_row; row < rows; row += kThreads) sum += in[row * columns + column];
  const float mean = block_sum<kBug>(sum, partials) / static_cast<float>(rows);
  float squares = 0;
  for (int row = first_row; row < rows; row += kThreads) {
    const float value = (in[row * columns + column] - mean) * column_scale;
    centered[row * columns + column] = value;
    squares += value * value;
  }
  if constexpr (kBug != Bug::kMissingBarrierBetweenUses) __syncthreads();
  squares = block_sum<kBug>(squares, partials);
  if (threadIdx.x == 0) spread[column] = squares;
}

template <Bug kBug>
bool gives_right_result() {
  constexpr int kRows = 96, kColumns = 3;
  std::vector<float> values = small_numbers(size_t{kRows} * kColumns, 1);
  for (int c = 0; c < kColumns; ++c) {  // the means are whole numbers, so every result is exact
    float sum = 0;
    for (int r = 1; r < kRows; ++r) sum += values[static_cast<size_t>(r * kColumns + c)];
    values[static_cast<size_t>(c)] = static_cast<float>(kRows * (c + 1)) - sum;
  }
  const std::vector<float> scales = {1, 2, 0.5};
  DeviceArray<float> in(values), scale(scales), centered(values.size()), spread(kColumns);
  cuda::launch(stream(),
               "center_columns",
               {kColumns, kThreads},
               center_columns<kBug>,
               in.data(),
               scale.data(),
               centered.data(),
               spread.data(),
               kRows,
               kColumns);
  std::vector<float> want(values.size()), want_spread(kColumns);
  for (size_t i = 0; i < want.size(); ++i) {
    const size_t column = i % kColumns;
    want[i] = (values[i] - static_cast<float>(column + 1)) * scales[column];
    want_spread[column] += want[i] * want[i];
  }
  return centered.download() == want && spread.download() == want_spread;
}

const Family family("block_reduction",
                    {{"none", gives_right_result<Bug::kNone>},
                     {"missing barrier", gives_right_result<Bug::kMissingBarrier>},
                     {"missing barrier between uses",
                      gives_right_result<Bug::kMissingBarrierBetweenUses>},
                     {"divergent barrier", gives_right_result<Bug::kDivergentBarrier>},
                     {"two barriers", gives_right_result<Bug::kTwoBarriers>},
                     {"barrier after return", gives_right_result<Bug::kBarrierAfterReturn>},
                     {"lane not in its mask", gives_right_result<Bug::kLaneNotInItsMask>},
                     {"lane outside mask", gives_right_result<Bug::kLaneOutsideMask>},
                     {"a lane leaves early", gives_right_result<Bug::kLaneLeavesEarly>},
                     {"different shuffles", gives_right_result<Bug::kDifferentShuffles>},
                     {"broadcast never written", gives_right_result<Bug::kBroadcastNeverWritten>},
                     {"shared index out of range", gives_right_result<Bug::kSharedIndexOutOfRange>},
                     {"missing shuffle step", gives_right_result<Bug::kMissingShuffleStep>},
                     {"wrong block size", gives_right_result<Bug::kWrongBlockSize>}});

}  // namespace
}  // namespace lockstep::emulation::mutants
