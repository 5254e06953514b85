#include "bench/allreduce/values.h"

#include <bit>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::bench::values_test {
namespace {

constexpr int64_t kCount = 3000;
constexpr Dtype kDtypes[] = {Dtype::kF32, Dtype::kF16, Dtype::kBF16};

float read(const Tensor& tensor, int64_t i) {
  const auto at = static_cast<size_t>(i);
  if (tensor.dtype() == Dtype::kF32) return tensor.span<float>()[at];
  if (tensor.dtype() == Dtype::kF16) return static_cast<float>(tensor.span<Half>()[at]);
  return static_cast<float>(tensor.span<BFloat16>()[at]);
}

void write(Tensor& tensor, int64_t i, float value) {
  const auto at = static_cast<size_t>(i);
  if (tensor.dtype() == Dtype::kF32) tensor.span<float>()[at] = value;
  if (tensor.dtype() == Dtype::kF16) tensor.span<Half>()[at] = Half(value);
  if (tensor.dtype() == Dtype::kBF16) tensor.span<BFloat16>()[at] = BFloat16(value);
}

float round_to(Dtype dtype, float value) {
  if (dtype == Dtype::kF16) return static_cast<float>(Half(value));
  if (dtype == Dtype::kBF16) return static_cast<float>(BFloat16(value));
  return value;
}

std::vector<Tensor> values_of_ranks(Dtype dtype, const Sample& sample) {
  std::vector<Tensor> ranks;
  for (int rank = 0; rank < sample.ranks; ++rank) {
    ranks.push_back(Tensor::empty({kCount}, dtype));
    fill_values(ranks.back(), sample, rank);
  }
  return ranks;
}

// core/tree.h's definition: the left subtree holds the largest power of two below the leaves.
float tree(const std::vector<Tensor>& ranks, int64_t i, size_t begin, size_t end) {
  if (end - begin == 1) return read(ranks[begin], i);
  const size_t middle = begin + std::bit_floor(end - begin - 1);
  return round_to(ranks[0].dtype(), tree(ranks, i, begin, middle) + tree(ranks, i, middle, end));
}

float left_fold(const std::vector<Tensor>& ranks, int64_t i) {
  float sum = read(ranks[0], i);
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    sum = round_to(ranks[0].dtype(), sum + read(ranks[rank], i));
  }
  return sum;
}

template <class Sum>
Tensor sums_by(Dtype dtype, Sum&& sum) {
  Tensor sums = Tensor::empty({kCount}, dtype);
  for (int64_t i = 0; i < kCount; ++i) write(sums, i, sum(i));
  return sums;
}

TEST(TestValues, ExactSumsAreExactInAnyOrder) {
  for (const Dtype dtype : kDtypes) {
    for (const int ranks : {1, 2, 3, 8, 17}) {
      const Sample sample{Pattern::kExact, 7, ranks};
      const auto values = values_of_ranks(dtype, sample);
      const auto by_tree = [&](int64_t i) { return tree(values, i, 0, values.size()); };
      const auto in_turn = [&](int64_t i) { return left_fold(values, i); };
      EXPECT_EQ(count_wrong(sums_by(dtype, by_tree), sample), 0) << name_of(dtype) << ranks;
      EXPECT_EQ(count_wrong(sums_by(dtype, in_turn), sample), 0) << name_of(dtype) << ranks;
    }
  }
}

TEST(TestValues, MoreRanksThanATypeCanCount) {
  const Sample sample{Pattern::kExact, 7, 300};  // bfloat16 holds whole numbers up to 256
  const auto values = values_of_ranks(Dtype::kBF16, sample);
  const auto in_turn = [&](int64_t i) { return left_fold(values, i); };
  EXPECT_EQ(count_wrong(sums_by(Dtype::kBF16, in_turn), sample), 0);
  EXPECT_GT(count_wrong(Tensor::zeros({kCount}, Dtype::kBF16), sample), kCount / 2);
}

TEST(TestValues, CancelingSumsAreTheTreesAndNoOthers) {
  for (const Dtype dtype : kDtypes) {
    for (const int ranks : {1, 2, 3, 4, 8, 17}) {
      const Sample sample{Pattern::kCanceling, 7, ranks};
      const auto values = values_of_ranks(dtype, sample);
      const auto by_tree = [&](int64_t i) { return tree(values, i, 0, values.size()); };
      const auto in_turn = [&](int64_t i) { return left_fold(values, i); };
      EXPECT_EQ(count_wrong(sums_by(dtype, by_tree), sample), 0) << name_of(dtype) << ranks;
      const int64_t differing = count_wrong(sums_by(dtype, in_turn), sample);
      if (ranks <= 3) {
        EXPECT_EQ(differing, 0) << "up to 3 ranks the tree is the left fold";
      } else {
        EXPECT_GT(differing, kCount / 10) << name_of(dtype) << ranks;
      }
    }
  }
}

TEST(TestValues, AMissingDoubledOrSwappedPartShows) {
  for (const Pattern pattern : {Pattern::kExact, Pattern::kCanceling}) {
    const Sample sample{pattern, 7, 2};
    const auto values = values_of_ranks(Dtype::kF32, sample);
    const auto twice = [&](int64_t i) { return read(values[0], i) * 2; };
    const auto alone = [&](int64_t i) { return read(values[1], i); };
    const auto moved = [&](int64_t i) {
      return read(values[0], i) + read(values[1], (i + 1) % kCount);
    };
    EXPECT_GT(count_wrong(sums_by(Dtype::kF32, twice), sample), kCount / 2);
    EXPECT_GT(count_wrong(sums_by(Dtype::kF32, alone), sample), kCount / 2);
    EXPECT_GT(count_wrong(sums_by(Dtype::kF32, moved), sample), kCount / 2);
  }
}

TEST(TestValues, EachWrongElementCountsOnce) {
  const Sample sample{Pattern::kExact, 7, 1};
  Tensor sums = values_of_ranks(Dtype::kF32, sample)[0];
  for (const int64_t i : {int64_t{0}, int64_t{77}, kCount - 1}) write(sums, i, read(sums, i) + 1);
  EXPECT_EQ(count_wrong(sums, sample), 3);
}

TEST(TestValues, SeedsGiveOtherValues) {
  const Tensor first = values_of_ranks(Dtype::kF32, {Pattern::kExact, 1, 1})[0];
  EXPECT_GT(count_wrong(first, {Pattern::kExact, 2, 1}), kCount - 10);
}

TEST(TestValues, OnesInEachType) {
  for (const Dtype dtype : kDtypes) {
    Tensor values = Tensor::zeros({5}, dtype);
    fill_ones(values);
    EXPECT_EQ(read(values, 4), 1.0F) << name_of(dtype);
  }
  Tensor integers = Tensor::zeros({5}, Dtype::kI32);
  EXPECT_THROW(fill_ones(integers), DtypeError);
}

}  // namespace
}  // namespace lockstep::bench::values_test
