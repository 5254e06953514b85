// Like max pooling's backward: each input gathers the gradients of the windows in which it is the
// maximum.
#include "tests/emulation/mutants/mutant.h"

namespace lockstep::emulation::mutants {
namespace {

enum class Bug {
  kNone,
  kReadsPastEnd,
  kReadsBeforeBegin,
  kMissesAWindow,
  kWrongComparison,
  kScatters,
  kWrongRow,
};

constexpr int kThreads = 64, kWidth = 21, kWindows = 10, kImages = 9;  // windows of 3, stride 2

// One thread per input. The windows that cover x are (x - 2) / 2, rounded up, to x / 2.
template <Bug kBug>
__global__ void __launch_bounds__(kThreads)
    gather_grads(const int* argmax, const float* grad_out, float* grad_in, int count) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i >= count) return;
  const int x = i % kWidth;
  const int image = kBug == Bug::kWrongRow ? i / (kWidth + 1) : i / kWidth;
  const int first = kBug == Bug::kReadsBeforeBegin ? x / 2 - 1 : max((x - 1) / 2, 0);
  const int last = kBug == Bug::kReadsPastEnd    ? x / 2
                   : kBug == Bug::kMissesAWindow ? min(x / 2, kWindows - 2)
                                                 : min(x / 2, kWindows - 1);
  float sum = 0;
  for (int window = first; window <= last; ++window) {
    const int at = image * kWindows + window;
    const bool mine = kBug == Bug::kWrongComparison ? argmax[at] >= x : argmax[at] == x;
    if constexpr (kBug == Bug::kScatters) {
      if (window == x / 2) grad_in[image * kWidth + argmax[at]] += grad_out[at];
    } else if (mine) {
      sum += grad_out[at];
    }
  }
  if constexpr (kBug != Bug::kScatters) grad_in[i] = sum;
}

template <Bug kBug>
bool gives_right_result() {
  constexpr size_t kOutputs = size_t{kImages} * kWindows;
  const std::vector<float> grads = small_numbers(kOutputs, 3);
  std::vector<int> argmax(kOutputs);
  std::vector<float> want(size_t{kImages} * kWidth, 0);
  for (size_t o = 0; o < kOutputs; ++o) {
    const size_t window = o % kWindows;
    argmax[o] = static_cast<int>(2 * window + o * o % 3);
    want[o / kWindows * kWidth + static_cast<size_t>(argmax[o])] += grads[o];
  }
  DeviceArray<int> device_argmax(argmax);
  DeviceArray<float> grad_out(grads), cleared(std::vector<float>(want.size(), 0));
  DeviceArray<float> unwritten(want.size());
  DeviceArray<float>& grad_in = kBug == Bug::kScatters ? cleared : unwritten;
  const int count = static_cast<int>(want.size());
  cuda::launch(stream(),
               "gather_grads",
               {cuda::blocks_for(count, kThreads), kThreads},
               gather_grads<kBug>,
               device_argmax.data(),
               grad_out.data(),
               grad_in.data(),
               count);
  return grad_in.download() == want;
}

const Family family("gather",
                    {{"none", gives_right_result<Bug::kNone>},
                     {"reads past the end", gives_right_result<Bug::kReadsPastEnd>},
                     {"reads before the begin", gives_right_result<Bug::kReadsBeforeBegin>},
                     {"misses a window", gives_right_result<Bug::kMissesAWindow>},
                     {"wrong comparison", gives_right_result<Bug::kWrongComparison>},
                     {"scatters instead", gives_right_result<Bug::kScatters>},
                     {"wrong row length", gives_right_result<Bug::kWrongRow>}});

}  // namespace
}  // namespace lockstep::emulation::mutants
