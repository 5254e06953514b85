#include <algorithm>
#include <numeric>

#include "core/cuda/launch.h"
#include "tests/emulation/kernel_test.h"

namespace lockstep::emulation {
namespace {

constexpr int kThreads = 64;

// order[k]: the thread that reached this line k-th, in the first phase and in the second.
__global__ void note_order(int* next, int* order) {
  const auto thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  order[atomicAdd(next, 1)] = thread;
  __syncthreads();
  order[atomicAdd(next, 1)] = thread;
}

std::vector<int> order_of(int blocks = 1) {
  Buffer<int> next(std::vector<int>{0});
  Buffer<int> order(static_cast<size_t>(2 * blocks * kThreads));
  run_kernel({static_cast<unsigned>(blocks), kThreads}, note_order, next.data(), order.data());
  return order.values();
}

std::vector<int> ascending(int begin, int count) {
  std::vector<int> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), begin);
  return values;
}

std::vector<int> half(const std::vector<int>& values, int which) {
  const auto middle = static_cast<std::ptrdiff_t>(values.size() / 2);
  return which == 0 ? std::vector<int>(values.begin(), values.begin() + middle)
                    : std::vector<int>(values.begin() + middle, values.end());
}

TEST(Order, ForwardAndReverse) {
  std::vector<int> threads = ascending(0, kThreads);
  {
    const ScopedSchedule scope({.order = Order::kForward});
    EXPECT_EQ(half(order_of(), 0), threads);
    EXPECT_EQ(half(order_of(), 1), threads);
    EXPECT_LT(order_of(3).front(), kThreads);
  }
  std::ranges::reverse(threads);
  const ScopedSchedule scope({.order = Order::kReverse});
  EXPECT_EQ(half(order_of(), 0), threads);
  EXPECT_EQ(half(order_of(), 1), threads);
  EXPECT_GE(order_of(3).front(), 2 * kThreads);
}

TEST(Order, RandomIsAPermutationOfTheSeed) {
  std::vector<std::vector<int>> seen;
  for (const uint64_t seed : {1, 2, 1}) {
    const ScopedSchedule scope({.order = Order::kRandom, .seed = seed});
    std::vector<int> first = order_of();
    seen.push_back(first);
    EXPECT_NE(order_of(), first) << "the next launch has another order";
    for (const int phase : {0, 1}) {
      std::vector<int> threads = half(first, phase);
      EXPECT_FALSE(std::ranges::is_sorted(threads));
      std::ranges::sort(threads);
      EXPECT_EQ(threads, ascending(0, kThreads)) << "a barrier separates the phases";
    }
  }
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_NE(seen[0], seen[1]);
}

// Counts how often warp 0 uses its second value before warp 1 has used its first.
__global__ void warps_ahead(int* used, int* ahead) {
  __shared__ int value;
  if (threadIdx.x == 0) value = 0;
  __syncthreads();
  for (int round = 0; round < 2; ++round) {
    __syncwarp();
    if (threadIdx.x % 32 != 0) continue;
    const int before = atomicAdd(used, 1);
    if (round == 1 && before == 1) atomicAdd(ahead, 1);
  }
}

TEST(Order, AWarpMayRunAhead) {
  const auto ahead_in = [](Schedule order) {
    const ScopedSchedule scope(order);
    Buffer<int> used(std::vector<int>{0}), ahead(std::vector<int>{0});
    run_kernel({1, 64}, warps_ahead, used.data(), ahead.data());
    return ahead.values()[0];
  };
  EXPECT_EQ(ahead_in({.order = Order::kForward}), 0);
  EXPECT_EQ(ahead_in({.order = Order::kReverse}), 1);
  int random = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    random += ahead_in({.order = Order::kRandom, .seed = seed});
  EXPECT_GT(random, 0);
  EXPECT_LT(random, 20);
}

__global__ void where_am_i(int* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  atomicAdd(&out[block * threads + thread], 1);
}

TEST(Order, EachThreadOfEachBlockRunsOnceAndIsCounted) {
  for (const Schedule& order : every_order()) {
    const ScopedSchedule scope(order);
    Buffer<int> out(std::vector<int>(2 * 3 * 2 * 32, 0));
    run_kernel({dim3(2, 3, 2), dim3(4, 4, 2)}, where_am_i, out.data());
    EXPECT_EQ(out.values(), std::vector<int>(out.values().size(), 1));
    EXPECT_EQ(counters.grids, 1U);
    EXPECT_EQ(counters.blocks, 12U);
    EXPECT_EQ(counters.threads, 12U * 32U);
  }
}

struct Point {
  int x, y;
};
__global__ void store_point(Point point, int* out) {
  point.x += 1;  // a thread's own copy
  out[threadIdx.x] = point.x * 10 + point.y;
}

TEST(Order, ArgumentsAreCopiedAtTheLaunch) {
  Stream stream(Device::kCuda);
  int* memory = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), 32 * sizeof(int)), cudaSuccess);
  Point point{1, 2};
  cuda::launch(stream, "store_point", {1, 32}, store_point, point, memory);
  point = {8, 8};
  stream.synchronize();
  int got[32];
  ASSERT_EQ(cudaMemcpyAsync(got, memory, sizeof(got), cudaMemcpyDeviceToHost, stream.cuda()),
            cudaSuccess);
  stream.synchronize();
  EXPECT_EQ(got[0], 22);
  EXPECT_EQ(got[31], 22);
  cudaFree(memory);
}

}  // namespace
}  // namespace lockstep::emulation
