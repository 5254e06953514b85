#include <cuda_fp16.h>

#include "tests/emulation/kernel_test.h"

namespace lockstep::emulation {
namespace {

constexpr unsigned kAll = 0xffffffffU;

enum class Shuffle { kIndex, kUp, kDown, kXor };

template <class T>
__global__ void shuffle(Shuffle op, int argument, int width, T* out) {
  const T mine(static_cast<T>(threadIdx.x));
  T got{};
  switch (op) {
    case Shuffle::kIndex:
      got = __shfl_sync(kAll, mine, argument, width);
      break;
    case Shuffle::kUp:
      got = __shfl_up_sync(kAll, mine, static_cast<unsigned>(argument), width);
      break;
    case Shuffle::kDown:
      got = __shfl_down_sync(kAll, mine, static_cast<unsigned>(argument), width);
      break;
    case Shuffle::kXor:
      got = __shfl_xor_sync(kAll, mine, argument, width);
      break;
  }
  out[threadIdx.x] = got;
}

template <class T = int>
std::vector<T> shuffled(Shuffle op, int argument, int width) {
  Buffer<T> out(64);
  run_kernel({1, 64}, shuffle<T>, op, argument, width, out.data());
  return out.values();
}

TEST(WarpOps, ShufflesReadTheLaneTheyName) {
  const std::vector<int> index = shuffled(Shuffle::kIndex, 5, 32);
  const std::vector<int> up = shuffled(Shuffle::kUp, 3, 32);
  const std::vector<int> down = shuffled(Shuffle::kDown, 16, 32);
  const std::vector<int> crossed = shuffled(Shuffle::kXor, 5, 32);
  for (int i = 0; i < 64; ++i) {
    const auto thread = static_cast<size_t>(i);
    const int lane = i % 32;
    EXPECT_EQ(index[thread], i - lane + 5);
    EXPECT_EQ(up[thread], lane < 3 ? i : i - 3);
    EXPECT_EQ(down[thread], lane < 16 ? i + 16 : i);
    EXPECT_EQ(crossed[thread], i ^ 5);
  }
}

TEST(WarpOps, WidthMakesSegments) {
  const std::vector<int> index = shuffled(Shuffle::kIndex, 13, 8);  // lane 13 % 8 of the segment
  const std::vector<int> up = shuffled(Shuffle::kUp, 1, 4);
  const std::vector<int> down = shuffled(Shuffle::kDown, 1, 4);
  const std::vector<int> crossed = shuffled(Shuffle::kXor, 8, 8);
  for (int i = 0; i < 64; ++i) {
    const auto thread = static_cast<size_t>(i);
    EXPECT_EQ(index[thread], i / 8 * 8 + 5);
    EXPECT_EQ(up[thread], i % 4 == 0 ? i : i - 1);
    EXPECT_EQ(down[thread], i % 4 == 3 ? i : i + 1);
    EXPECT_EQ(crossed[thread], (i ^ 8) < i ? i ^ 8 : i);  // may read earlier segments only
  }
}

TEST(WarpOps, EveryTypeOfUpToEightBytes) {
  EXPECT_EQ(shuffled<double>(Shuffle::kXor, 1, 32)[6], 7.0);
  EXPECT_EQ(shuffled<int64_t>(Shuffle::kXor, 1, 32)[6], 7);
  EXPECT_EQ(shuffled<unsigned char>(Shuffle::kXor, 1, 32)[6], 7);
  EXPECT_EQ(__half2float(shuffled<__half>(Shuffle::kXor, 1, 32)[6]), 7.0F);
}

__global__ void votes(unsigned* ballot, int* all, int* any, int* block) {
  const unsigned thread = threadIdx.x;
  ballot[thread] = __ballot_sync(kAll, thread % 3 == 0);
  all[thread] = __all_sync(kAll, thread < 32);
  any[thread] = __any_sync(kAll, thread == 40);
  const int count = __syncthreads_count(thread % 5 == 0);
  const int every = __syncthreads_and(thread < 64);
  const int some = __syncthreads_or(thread > 64);
  block[thread] = 100 * count + 10 * every + some;
}

TEST(WarpOps, VotesOfWarpsAndBlocks) {
  Buffer<unsigned> ballot(64);
  Buffer<int> all(64), any(64), block(64);
  run_kernel({1, 64}, votes, ballot.data(), all.data(), any.data(), block.data());
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(ballot.values()[i], i < 32 ? 0x49249249U : 0x92492492U);
    EXPECT_EQ(all.values()[i], i < 32 ? 1 : 0);
    EXPECT_EQ(any.values()[i], i < 32 ? 0 : 1);
    EXPECT_EQ(block.values()[i], 1310);  // 13 multiples of 5; all below 64; none above
  }
}

__global__ void halves(int* out) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned half = lane < 16 ? 0x0000ffffU : 0xffff0000U;
  int sum = 1;
  const int rounds = lane < 16 ? 1 : 4;
  for (int i = 0; i < rounds; ++i) sum += __shfl_xor_sync(half, sum, 1);
  out[threadIdx.x] = sum + __shfl_xor_sync(kAll, sum, 16);
}

TEST(WarpOps, PartsOfAWarpWorkOnTheirOwnAndMeetAgain) {
  for (const Schedule& order : every_order()) {
    const ScopedSchedule scope(order);
    Buffer<int> out(32);
    run_kernel({1, 32}, halves, out.data());
    EXPECT_EQ(out.values(), std::vector<int>(32, 2 + 16));
  }
}

__global__ void short_warp(unsigned* out) {
  const unsigned mask = threadIdx.x < 32 ? kAll : 0xffU;
  out[threadIdx.x] = __ballot_sync(mask, 1) + __shfl_xor_sync(mask, threadIdx.x, 1);
}

TEST(WarpOps, LastWarpOfABlockMayBeShort) {
  Buffer<unsigned> out(40);
  run_kernel({1, 40}, short_warp, out.data());
  EXPECT_EQ(out.values()[2], kAll + 3);
  EXPECT_EQ(out.values()[34], 0xffU + 35);
}

}  // namespace
}  // namespace lockstep::emulation
