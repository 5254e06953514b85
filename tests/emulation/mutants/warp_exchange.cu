// Lanes of a warp exchange values through shared memory.
#include "tests/emulation/mutants/mutant.h"

namespace lockstep::emulation::mutants {
namespace {

enum class Bug {
  kNone,
  kMissingSyncwarp,
  kMissingSyncwarpBeforeReuse,
  kHalfMask,
  kShuffleAsFence,
  kReadsOtherWarp,
  kUnequalMasks,
  kBallotOfSome,
  kReturnedLaneInMask,
  kWidthNoPowerOfTwo,
};

constexpr int kThreads = 64;

template <Bug kBug>
__device__ void sync_after_write() {
  constexpr unsigned kAll = 0xffffffffU;
  if constexpr (kBug == Bug::kHalfMask) {
    __syncwarp(threadIdx.x % 32 < 16 ? 0x0000ffffU : 0xffff0000U);
  } else if constexpr (kBug == Bug::kUnequalMasks) {
    __syncwarp(threadIdx.x % 32 < 16 ? kAll : 0xffff0000U);
  } else if constexpr (kBug == Bug::kShuffleAsFence) {
    __shfl_xor_sync(kAll, 0, 1);
  } else if constexpr (kBug == Bug::kWidthNoPowerOfTwo) {
    __syncwarp();
    __shfl_up_sync(kAll, 0, 1, 12);
  } else if constexpr (kBug != Bug::kMissingSyncwarp) {
    __syncwarp();
  }
}

// Reverses the elements of each warp, for two inputs in turn. positive[w]: the number of positive
// elements of the second.
template <Bug kBug>
__global__ void __launch_bounds__(kThreads)
    reverse_warps(const float* in, float* out, int* positive, int count) {
  __shared__ float exchange[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32, warp_begin = thread - lane;
  const int other = kBug == Bug::kReadsOtherWarp ? kThreads - 1 - thread : warp_begin + 31 - lane;
  if constexpr (kBug == Bug::kReturnedLaneInMask) {
    if (lane == 31) return;
  }
  int bits = 0;
  for (int round = 0; round < 2; ++round) {
    const int i = round * count + thread;
    exchange[thread] = in[i];
    sync_after_write<kBug>();
    const float value = exchange[other];
    out[i] = value;
    if constexpr (kBug != Bug::kMissingSyncwarpBeforeReuse) __syncwarp();
    if (kBug != Bug::kBallotOfSome || lane < 31)
      bits = __popc(__ballot_sync(0xffffffffU, value > 0 ? 1 : 0));
  }
  if (lane == 0) positive[thread / 32] = bits;
}

template <Bug kBug>
bool gives_right_result() {
  const std::vector<float> values = small_numbers(size_t{2} * kThreads, 4);
  std::vector<float> want(values.size());
  std::vector<int> want_positive(2, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    want[i] = values[i / 32 * 32 + 31 - i % 32];
    if (i >= kThreads && want[i] > 0) ++want_positive[i % kThreads / 32];
  }
  DeviceArray<float> in(values), out(values.size());
  DeviceArray<int> positive(2);
  cuda::launch(stream(),
               "reverse_warps",
               {1, kThreads},
               reverse_warps<kBug>,
               in.data(),
               out.data(),
               positive.data(),
               kThreads);
  return out.download() == want && positive.download() == want_positive;
}

const Family family("warp_exchange",
                    {{"none", gives_right_result<Bug::kNone>},
                     {"missing syncwarp", gives_right_result<Bug::kMissingSyncwarp>},
                     {"missing syncwarp before reuse",
                      gives_right_result<Bug::kMissingSyncwarpBeforeReuse>},
                     {"syncwarp of half the lanes", gives_right_result<Bug::kHalfMask>},
                     {"shuffle taken for a fence", gives_right_result<Bug::kShuffleAsFence>},
                     {"reads another warp's", gives_right_result<Bug::kReadsOtherWarp>},
                     {"unequal masks", gives_right_result<Bug::kUnequalMasks>},
                     {"ballot without a lane", gives_right_result<Bug::kBallotOfSome>},
                     {"returned lane in mask", gives_right_result<Bug::kReturnedLaneInMask>},
                     {"width no power of two", gives_right_result<Bug::kWidthNoPowerOfTwo>}});

}  // namespace
}  // namespace lockstep::emulation::mutants
