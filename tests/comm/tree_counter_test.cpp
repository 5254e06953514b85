#include "comm/tree_counter.h"

#include <bit>

#include <gtest/gtest.h>

#include "core/allocator.h"
#include "tests/support/collectives.h"

namespace lockstep::comm::tree_counter_test {
namespace {

using testing::canceling_values;

constexpr int64_t kCount = 37;

Tensor leaf_of(int64_t leaf, int64_t count = kCount) {
  Tensor tensor = Tensor::empty({count}, Dtype::kF32);
  std::ranges::copy(canceling_values(static_cast<int>(leaf), count), tensor.data<float>());
  return tensor;
}

TEST(TreeCounter, SumsInTreeOrderHoweverManyLeaves) {
  Stream stream;
  TreeCounter counter;
  for (int leaves = 1; leaves <= 33; ++leaves) {
    for (int64_t leaf = 0; leaf < leaves; ++leaf) counter.push(stream, leaf_of(leaf));
    const Tensor sum = counter.take(stream);
    const auto got = sum.span<float>();
    EXPECT_EQ(std::vector<float>(got.begin(), got.end()),
              testing::sum_of_canceling_values(leaves, kCount))
        << leaves << " leaves";
  }
}

TEST(TreeCounter, HoldsALogarithmOfTheLeaves) {
  Stream stream;
  constexpr int64_t kLarge = 4096;
  const size_t leaf_bytes = CachingAllocator::rounded(kLarge * sizeof(float));
  const size_t before = cpu_allocator().stats().bytes_in_use;
  TreeCounter counter;
  for (uint64_t leaf = 0; leaf < 64; ++leaf) {
    counter.push(stream, leaf_of(static_cast<int64_t>(leaf), kLarge));
    const auto nodes = static_cast<size_t>(std::popcount(leaf + 1));
    EXPECT_EQ(cpu_allocator().stats().bytes_in_use - before, nodes * leaf_bytes);
  }
}

TEST(TreeCounter, OneLeafIsNotCopied) {
  Stream stream;
  TreeCounter counter;
  const Tensor leaf = leaf_of(0);
  counter.push(stream, leaf);
  EXPECT_EQ(counter.take(stream).bytes(), leaf.bytes());
}

TEST(TreeCounter, AnEmptySumIsABug) {
  Stream stream;
  TreeCounter counter;
  EXPECT_THROW(counter.take(stream), InternalError);
}

}  // namespace
}  // namespace lockstep::comm::tree_counter_test
