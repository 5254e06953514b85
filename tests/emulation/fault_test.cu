// Tests the scheduler's own error messages, which stop a kernel in every build.
#include <gmock/gmock.h>

#include "tests/emulation/kernel_test.h"

namespace lockstep::emulation {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr unsigned kAll = 0xffffffffU;

constexpr int kDivergent = __LINE__ + 2;
__global__ void divergent() {
  if (threadIdx.x < 32) __syncthreads();
}

constexpr int kAfterReturn = __LINE__ + 3;
__global__ void after_return() {
  if (threadIdx.x == 40) return;
  __syncthreads();
}

constexpr int kTwoBarriers = __LINE__ + 3;
__global__ void two_barriers() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

constexpr int kLaneMissing = __LINE__ + 2;
__global__ void lane_missing() {
  if (threadIdx.x != 7) __shfl_xor_sync(kAll, 0, 1);
}

constexpr int kNotInMask = __LINE__ + 2;
__global__ void not_in_mask() {
  __shfl_xor_sync(0x0fffffffU, 0, 1);
}

constexpr int kReadsOutside = __LINE__ + 2;
__global__ void reads_outside() {
  if (threadIdx.x < 16) __shfl_down_sync(0xffffU, 0, 8);
}

constexpr int kDifferentMasks = __LINE__ + 2;
__global__ void different_masks() {
  __syncwarp(threadIdx.x < 16 ? kAll : 0xfffffff0U);
}

constexpr int kUnevenLoop = __LINE__ + 3;
__global__ void uneven_loop(int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 32) {
    __shfl_xor_sync(kAll, i, 1);
  }
}

constexpr int kNoSuchLanes = __LINE__ + 2;
__global__ void no_such_lanes() {
  __syncwarp(kAll);
}

constexpr int kOddWidth = __LINE__ + 2;
__global__ void odd_width() {
  __shfl_up_sync(kAll, 0, 1, 12);
}

std::string place(int line) {
  return EMULATED_LINE(line);
}

TEST(Fault, BarriersThatNotAllThreadsReach) {
  for (const Schedule& order : every_order()) {
    const ScopedSchedule scope(order);
    EXPECT_THAT(fault_of({1, 64}, divergent), HasSubstr("__syncthreads"));
    EXPECT_THAT(fault_of({1, 64}, after_return), HasSubstr("__syncthreads"));
    EXPECT_THAT(fault_of({1, 64}, two_barriers), HasSubstr("different __syncthreads"));
  }
}

TEST(Fault, WarpOperationsThatNotAllLanesReach) {
  for (const Schedule& order : every_order()) {
    const ScopedSchedule scope(order);
    EXPECT_THAT(fault_of({1, 32}, lane_missing), HasSubstr(place(kLaneMissing)));
    EXPECT_THAT(fault_of({1, 32}, not_in_mask), HasSubstr("a lane is not in its own mask"));
    EXPECT_THAT(fault_of({1, 32}, reads_outside), HasSubstr("a lane that is not in the mask"));
    EXPECT_THAT(fault_of({1, 32}, different_masks), HasSubstr(place(kDifferentMasks)));
    EXPECT_THAT(fault_of({1, 32}, uneven_loop, 40), HasSubstr(place(kUnevenLoop)));
    EXPECT_THAT(fault_of({1, 40}, no_such_lanes), HasSubstr("lanes that the block does not have"));
    EXPECT_THAT(fault_of({1, 32}, odd_width), HasSubstr("width is no power of two"));
  }
}

TEST(Fault, NamesLineBlockThreadAndKernel) {
  const ScopedSchedule scope({.order = Order::kForward});
  EXPECT_THAT(
      fault_of({dim3(1, 2), 64}, after_return),
      AllOf(HasSubstr("a thread returned while another waits at __syncthreads: "),
            HasSubstr(place(kAfterReturn) + ", block (0,0,0), thread (0,0,0)"),
            HasSubstr("\n  in lockstep::emulation::(anonymous namespace)::after_return()")));
  EXPECT_THAT(fault_of({1, dim3(64, 2)}, divergent),
              AllOf(HasSubstr(place(kDivergent)), HasSubstr("another waits at __syncthreads")));
  EXPECT_THAT(fault_of({1, 64}, two_barriers),
              AllOf(HasSubstr(place(kTwoBarriers)), HasSubstr(place(kTwoBarriers + 2))));
  EXPECT_THAT(fault_of({1, 32}, not_in_mask),
              HasSubstr(place(kNotInMask) + ", block (0,0,0), thread (28,0,0)"));
  EXPECT_THAT(fault_of({1, 32}, reads_outside),
              HasSubstr(place(kReadsOutside) + ", block (0,0,0), thread (8,0,0), mask 0000ffff"));
  EXPECT_THAT(fault_of({1, 40}, no_such_lanes), HasSubstr(place(kNoSuchLanes)));
  EXPECT_THAT(fault_of({1, 32}, odd_width), HasSubstr(place(kOddWidth)));
}

__global__ void sound(int* out) {
  out[threadIdx.x] = __shfl_xor_sync(kAll, static_cast<int>(threadIdx.x), 1);
  __syncthreads();
}

TEST(Fault, TheNextGridRunsAsIfNothingHadBeen) {
  Buffer<int> out(64);
  for (const Schedule& order : every_order()) {
    const ScopedSchedule scope(order);
    EXPECT_NE(fault_of({3, 64}, divergent), "");
    EXPECT_EQ(fault_of({1, 64}, sound, out.data()), "");
    EXPECT_EQ(out.values()[63], 62);
  }
}

}  // namespace
}  // namespace lockstep::emulation
