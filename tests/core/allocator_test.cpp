#include "core/allocator.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/stream.h"
#include "core/tensor.h"
#include "tests/support/no_memory.h"

// Sanitizers end the process where malloc would return null, unless told not to.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}

namespace lockstep::allocator_test {
namespace {

// A caller may go on with a smaller batch.
TEST(Workspace, IsThereAgainAfterARequestThatFailed) {
  Stream stream;
  ASSERT_NE(stream.workspace(4096, 0).shared, nullptr);
  EXPECT_THROW(stream.workspace(size_t{1} << 60, 0), EnvironmentError);
  EXPECT_NE(stream.workspace(64, 0).shared, nullptr);
}

TEST(CachingAllocator, RoundsUpByAnEighthAtMost) {
  EXPECT_EQ(CachingAllocator::rounded(0), 64U);
  EXPECT_EQ(CachingAllocator::rounded(64), 64U);
  EXPECT_EQ(CachingAllocator::rounded(65), 128U);
  EXPECT_EQ(CachingAllocator::rounded(1024), 1024U);
  EXPECT_EQ(CachingAllocator::rounded(1025), 1152U);
  for (size_t bytes = 512; bytes < 100'000; bytes += 7) {
    const size_t rounded = CachingAllocator::rounded(bytes);
    ASSERT_GE(rounded, bytes);
    ASSERT_LE(rounded - bytes, bytes / 8 + 1) << bytes;
    ASSERT_EQ(CachingAllocator::rounded(rounded), rounded) << bytes;
    ASSERT_EQ(rounded % 64, 0U) << bytes;
  }
}

TEST(CachingAllocator, BlocksAreAlignedAndApart) {
  CachingAllocator allocator(system_memory());
  std::vector<std::pair<void*, size_t>> blocks;
  for (const size_t bytes : {0, 1, 63, 64, 1000, 100'000, 3 << 20}) {
    void* block = allocator.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0U) << bytes;
    for (size_t i = 0; i < bytes; ++i) static_cast<char*>(block)[i] = static_cast<char>(bytes);
    blocks.emplace_back(block, bytes);
  }
  for (const auto& [block, bytes] : blocks) {
    const std::span<const char> held(static_cast<const char*>(block), bytes);
    EXPECT_EQ(std::ranges::count(held, static_cast<char>(bytes)), std::ssize(held)) << bytes;
    allocator.free(block, bytes);
  }
}

TEST(CachingAllocator, GivesABlockOfTheSameSizeAgain) {
  CachingAllocator allocator(system_memory());
  void* first = allocator.allocate(1000);
  allocator.free(first, 1000);
  void* same = allocator.allocate(1020);  // rounds to the same size
  EXPECT_EQ(same, first);
  void* other = allocator.allocate(1000);
  EXPECT_NE(other, first);
  allocator.free(same, 1020);
  allocator.free(other, 1000);
}

TEST(CachingAllocator, CountsWhatIsUsedAndKept) {
  CachingAllocator allocator(system_memory());
  void* a = allocator.allocate(100);
  void* b = allocator.allocate(1024);
  EXPECT_EQ(allocator.stats().bytes_in_use, 128U + 1024);
  allocator.free(a, 100);
  const AllocatorStats stats = allocator.stats();
  EXPECT_EQ(stats.bytes_in_use, 1024U);
  EXPECT_EQ(stats.bytes_cached, 128U);
  EXPECT_EQ(stats.peak_bytes_in_use, 128U + 1024);
  EXPECT_EQ(stats.system_allocations, 2);
  a = allocator.allocate(100);
  EXPECT_EQ(allocator.stats().bytes_cached, 0U);
  allocator.free(a, 100);
  allocator.free(b, 1024);
}

TEST(CachingAllocator, AfterOneStepTheSystemIsNotAsked) {
  const auto step = [] {
    const Tensor a = Tensor::empty({100, 33}, Dtype::kF32);
    const Tensor b = Tensor::zeros({8, 3, 28, 28}, Dtype::kF16);
    const Tensor c = to_row_major(b);
    return c.nbytes();
  };
  (void)step();
  const AllocatorStats warm = cpu_allocator().stats();
  for (int i = 0; i < 5; ++i) (void)step();
  EXPECT_EQ(cpu_allocator().stats().system_allocations, warm.system_allocations);
  EXPECT_EQ(cpu_allocator().stats().bytes_in_use, warm.bytes_in_use);
}

TEST(CachingAllocator, SaysHowMuchIsMissing) {
  CachingAllocator allocator(system_memory(), {.holds = "what this test holds"});
  void* held = allocator.allocate(1024);
  for (const size_t bytes : {size_t{1} << 60, SIZE_MAX}) {
    try {
      (void)allocator.allocate(bytes);
      FAIL() << "no error";
    } catch (const EnvironmentError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("out of memory: ")) << error.what();
      EXPECT_TRUE(error.why().ends_with("0.0 MiB of what this test holds")) << error.why();
      EXPECT_EQ(error.remedy(), Remedy::kSmallerBatch);
    }
  }
  EXPECT_EQ(allocator.stats().bytes_in_use, 1024U);
  allocator.free(held, 1024);
}

TEST(CachingAllocator, ThreadsNeverShareABlock) {
  CachingAllocator allocator(system_memory());
  std::vector<std::thread> threads;
  std::atomic<int> clashes = 0;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([&, id] {
      for (int round = 0; round < 500; ++round) {
        auto* block = static_cast<volatile int*>(allocator.allocate(256));
        block[0] = id;
        block[63] = id;
        if (block[0] != id || block[63] != id) ++clashes;
        allocator.free(const_cast<int*>(block), 256);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
  EXPECT_EQ(allocator.stats().bytes_in_use, 0U);
}

// Address space in front of ordinary memory.
class ArenaSource : public MemorySource {
 public:
  void* allocate(size_t bytes) override {
    ++calls;
    return system_memory().allocate(bytes);
  }
  void free(void* block) override { system_memory().free(block); }
  size_t arena_bytes() const override { return size_t{8} << 20; }
  std::string out_of_memory_text() const override { return "out of memory"; }

  int calls = 0;
};

TEST(CachingAllocator, LargeBlocksOfManySizesShareAnArena) {
  constexpr size_t kMiB = size_t{1} << 20;
  ArenaSource source;
  CachingAllocator allocator(source);
  void* four = allocator.allocate(4 * kMiB);
  allocator.free(four, 4 * kMiB);
  void* one = allocator.allocate(kMiB);
  void* three = allocator.allocate(3 * kMiB);
  EXPECT_EQ(one, four);
  EXPECT_EQ(static_cast<char*>(three), static_cast<char*>(one) + kMiB);
  EXPECT_EQ(allocator.stats().system_allocations, 1);
  EXPECT_EQ(allocator.stats().bytes_cached, 0U);
  void* beyond = allocator.allocate(5 * kMiB);  // does not fit the first arena
  EXPECT_EQ(source.calls, 2);
  void* huge = allocator.allocate(20 * kMiB);  // an arena by itself
  EXPECT_EQ(source.calls, 3);
  allocator.free(one, kMiB);
  allocator.free(three, 3 * kMiB);
  EXPECT_EQ(allocator.allocate(4 * kMiB), four);  // neighbors became one
  allocator.free(four, 4 * kMiB);
  allocator.free(beyond, 5 * kMiB);
  allocator.free(huge, 20 * kMiB);
  EXPECT_EQ(allocator.stats().bytes_in_use, 0U);
  EXPECT_EQ(allocator.stats().bytes_cached, 29 * kMiB);
}

// So many bytes in all.
class LittleMemory : public ArenaSource {
 public:
  explicit LittleMemory(size_t bytes) : left_(bytes) {}
  void* allocate(size_t bytes) override {
    if (bytes > left_) return nullptr;
    void* block = ArenaSource::allocate(bytes);
    sizes_[block] = bytes;
    left_ -= bytes;
    return block;
  }
  void free(void* block) override {
    left_ += sizes_.at(block);
    sizes_.erase(block);
    ArenaSource::free(block);
  }
  size_t arena_bytes() const override { return 0; }
  size_t left() const { return left_; }

 private:
  size_t left_;
  std::map<void*, size_t> sizes_;
};

constexpr CachingAllocator::Options kCutAll = {
    .holds = "parts", .arena_bytes = 1 << 20, .smallest_in_arenas = 0, .arena_unit = 512};

TEST(MemoryShortage, AShortageMakesAllAllocatorsOfASourceLetGo) {
  constexpr size_t kKiB = 1024;
  LittleMemory memory(4096 * kKiB);
  CachingAllocator one(memory), other(memory), parts(memory, kCutAll);
  one.free(one.allocate(1500 * kKiB), 1500 * kKiB);
  parts.free(parts.allocate(100 * kKiB), 100 * kKiB);
  void* all = other.allocate(4096 * kKiB);
  EXPECT_EQ(one.stats().bytes_cached, 0U);
  EXPECT_EQ(parts.stats().bytes_cached, 0U);
  try {
    parts.allocate(1000);
    FAIL() << "no error";
  } catch (const EnvironmentError& error) {
    EXPECT_EQ(error.why(), "in use: 4.0 MiB of tensors");
  }
  other.free(all, 4096 * kKiB);
}

TEST(MemoryShortage, ArenasThatAreHeldStay) {
  constexpr size_t kMiB = 1 << 20;
  LittleMemory memory(4 * kMiB);
  CachingAllocator other(memory), parts(memory, kCutAll);
  void* recorded = parts.allocate(kMiB);
  parts.free(recorded, kMiB);
  parts.hold_arenas();
  void* later = parts.allocate(2 * kMiB);  // of another shape
  parts.free(later, 2 * kMiB);
  EXPECT_THROW(other.allocate(4 * kMiB), EnvironmentError);
  EXPECT_EQ(memory.left(), 3 * kMiB);
  EXPECT_EQ(parts.allocate(kMiB), recorded);  // and are used again
  parts.free(recorded, kMiB);
}

// A tensor of half the size finds room where two of them were one, whatever is rounded elsewhere.
TEST(MemoryShortage, PartsAreRoundedToUnitsAlone) {
  constexpr size_t kHalf = 300 * 512;
  CachingAllocator::Options options = kCutAll;
  options.first_arena_bytes = 2 * kHalf;
  LittleMemory memory(2 * kHalf);
  CachingAllocator parts(memory, options);
  void* const whole = parts.allocate(2 * kHalf);
  parts.free(whole, 2 * kHalf);
  EXPECT_EQ(parts.allocate(kHalf), whole);
  void* const half = parts.allocate(kHalf - 1);
  EXPECT_EQ(half, static_cast<std::byte*>(whole) + kHalf);
  EXPECT_EQ(parts.stats().bytes_in_use, 2 * kHalf);
  parts.free(half, kHalf - 1);
  parts.free(whole, kHalf);
  EXPECT_EQ(parts.stats().bytes_in_use, 0U);
}

TEST(MemoryShortage, CachesAreLetGoBeforeArenasBecomeSmaller) {
  constexpr size_t kKiB = 1024;
  LittleMemory memory(4096 * kKiB);
  CachingAllocator::Options options = kCutAll;
  options.first_arena_bytes = 4096 * kKiB;
  CachingAllocator other(memory), parts(memory, options);
  other.free(other.allocate(kKiB), kKiB);
  void* const block = parts.allocate(kKiB);
  EXPECT_EQ(memory.left(), 0U);
  parts.free(block, kKiB);
}

// The last arena may be smaller than others.
TEST(MemoryShortage, WhatIsLeftOfAMemoryIsUsed) {
  LittleMemory memory((1 << 20) + 4096);
  CachingAllocator parts(memory, kCutAll);
  std::vector<void*> blocks;
  for (int i = 0; i < 257; ++i) blocks.push_back(parts.allocate(4096));
  EXPECT_EQ(memory.left(), 0U);
  EXPECT_THROW(parts.allocate(64), EnvironmentError);
  for (void* block : blocks) parts.free(block, 4096);
}

TEST(CachingAllocator, KeepsNothingWhenToldSo) {
  CachingAllocator allocator(system_memory(), {.keep = false});
  allocator.free(allocator.allocate(1000), 1000);
  allocator.free(allocator.allocate(1000), 1000);
  EXPECT_EQ(allocator.stats().system_allocations, 2);
  EXPECT_EQ(allocator.stats().bytes_cached, 0U);
  EXPECT_EQ(allocator.stats().bytes_in_use, 0U);
}

// Destructors do so, and an exception there would end the process.
TEST(CachingAllocator, TakesBlocksBackWhenMemoryHasRunOut) {
  if (!testing::can_exhaust_memory()) GTEST_SKIP() << "a sanitizer allocates, too";
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < 500; ++i) {
    tensors.push_back(Tensor::empty({777 + i / 100 * 1000}, Dtype::kF32));
  }
  EXPECT_EXIT(
      {
        testing::exhaust_memory();
        tensors.clear();
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0),
      "");
}

TEST(CachingAllocator, AnswersWithAnErrorWhenMemoryHasRunOut) {
  if (!testing::can_exhaust_memory()) GTEST_SKIP() << "a sanitizer allocates, too";
  EXPECT_EXIT(
      {
        testing::exhaust_memory();
        try {
          std::ignore = Tensor::empty({777'777}, Dtype::kF32);
        } catch (const std::exception&) {
          std::_Exit(0);
        }
      },
      ::testing::ExitedWithCode(0),
      "");
}

}  // namespace
}  // namespace lockstep::allocator_test
