// Like softmax cross-entropy: one block per row, which stays in dynamic shared memory between the
// passes.
#include "tests/emulation/mutants/mutant.h"

namespace lockstep::emulation::mutants {
namespace {

enum class Bug {
  kNone,
  kMissingBarrier,
  kSharedIndexOneTooHigh,
  kTooLittleSharedMemory,
  kSharedMemoryNotWritten,
  kReadsPastEnd,
  kReadsBeforeBegin,
  kWrongStride,
  kShuffleInUnevenLoop,
  kRaceBetweenBlocks,
  kWrongLabel,
};

constexpr int kThreads = 64;

// shares[r][i] = in[r][i] / sum of row r, label_share[r] = shares[r][label[r]]. One block per row.
template <Bug kBug>
__global__ void __launch_bounds__(kThreads)
    row_shares(const float* in, const int* labels, float* shares, float* label_share, int length) {
  LS_DYNAMIC_SHARED(float, row);  // `length` elements, then a sum for each warp
  const int thread = static_cast<int>(threadIdx.x);
  const int block = static_cast<int>(blockIdx.x);
  const float* from = in + block * length;
  if constexpr (kBug == Bug::kReadsBeforeBegin) --from;
  const int end = kBug == Bug::kReadsPastEnd ? (length + 31) / 32 * 32 : length;
  constexpr int kStride = kBug == Bug::kWrongStride ? kThreads / 2 : kThreads;
  float sum = 0;
  for (int i = thread; i < end; i += kStride) {
    if (kBug != Bug::kSharedMemoryNotWritten || i < kThreads) row[i] = from[i];
    sum += from[i];
    if constexpr (kBug == Bug::kShuffleInUnevenLoop) sum += __shfl_xor_sync(0xffffffffU, sum, 16);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
  float* const sums = row + length + (kBug == Bug::kSharedIndexOneTooHigh ? 1 : 0);
  if (thread % 32 == 0) sums[thread / 32] = sum;
  if constexpr (kBug != Bug::kMissingBarrier) __syncthreads();
  sum = sums[0] + sums[1];
  const int to = kBug == Bug::kRaceBetweenBlocks ? block / 2 * 2 : block;
  for (int i = thread; i < length; i += kThreads) shares[to * length + i] = row[i] / sum;
  if (thread == 0) label_share[block] = row[labels[block]] / sum;
}

template <Bug kBug>
bool gives_right_result() {
  constexpr int kRows = 4, kLength = 77;
  std::vector<float> values = small_numbers(size_t{kRows} * kLength, 2);
  std::vector<float> want(values.size()), want_label(kRows);
  std::vector<int> labels(kRows);
  for (size_t r = 0; r < kRows; ++r) {
    float sum = 0;
    for (size_t i = 0; i < kLength; ++i) sum += values[r * kLength + i];
    values[r * kLength] += 64 - sum;
    for (size_t i = 0; i < kLength; ++i) want[r * kLength + i] = values[r * kLength + i] / 64;
    labels[r] = static_cast<int>(20 * r + 3);
    want_label[r] = want[r * kLength + 20 * r + 3];
  }
  if constexpr (kBug == Bug::kWrongLabel) labels[1] = 1 << 20;
  DeviceArray<float> in(values), shares(values.size()), label_share(kRows);
  DeviceArray<int> device_labels(labels);
  constexpr size_t kSums = kBug == Bug::kTooLittleSharedMemory ? 1 : 2;
  cuda::launch(stream(),
               "row_shares",
               {kRows, kThreads, (kLength + kSums) * sizeof(float)},
               row_shares<kBug>,
               in.data(),
               device_labels.data(),
               shares.data(),
               label_share.data(),
               kLength);
  return shares.download() == want && label_share.download() == want_label;
}

const Family family("softmax_rows",
                    {{"none", gives_right_result<Bug::kNone>},
                     {"missing barrier", gives_right_result<Bug::kMissingBarrier>},
                     {"shared index one too high", gives_right_result<Bug::kSharedIndexOneTooHigh>},
                     {"too little shared memory", gives_right_result<Bug::kTooLittleSharedMemory>},
                     {"shared memory not written",
                      gives_right_result<Bug::kSharedMemoryNotWritten>},
                     {"reads past the end", gives_right_result<Bug::kReadsPastEnd>},
                     {"reads before the begin", gives_right_result<Bug::kReadsBeforeBegin>},
                     {"wrong stride", gives_right_result<Bug::kWrongStride>},
                     {"shuffle in an uneven loop", gives_right_result<Bug::kShuffleInUnevenLoop>},
                     {"race between blocks", gives_right_result<Bug::kRaceBetweenBlocks>},
                     {"label far out of range", gives_right_result<Bug::kWrongLabel>}});

}  // namespace
}  // namespace lockstep::emulation::mutants
