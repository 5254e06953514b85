#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/norm/batch_norm.h"
#include "tests/reference/batch_norm.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::batch_norm_stats_test {
namespace {

using testing::close;
using testing::doubles;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::same_bits;

// Statistics of the whole batch as one shard.
Tensor stats_of(const Tensor& in) {
  Stream stream;
  Tensor stats = poisoned_tensor({1, 2 * in.shape()[1] + 1}, Dtype::kF32);
  batch_norm_shard_stats(stream, Shards::single(in.shape()[0]), in, stats);
  return stats.view({stats.numel()});
}

Tensor merged(const Tensor& leaves, int64_t pixels) {
  Stream stream;
  Tensor out = poisoned_tensor({leaves.shape()[1]}, Dtype::kF32);
  batch_norm_merge_stats(stream, leaves, pixels, out);
  return out;
}

// `rows` (each (2C+1)) as leaves.
Tensor stacked(const std::vector<Tensor>& rows) {
  const int64_t width = rows[0].numel();
  Tensor leaves = Tensor::empty({static_cast<int64_t>(rows.size()), width}, Dtype::kF32);
  for (size_t k = 0; k < rows.size(); ++k) {
    std::ranges::copy(rows[k].span<const float>(),
                      leaves.data<float>() + static_cast<int64_t>(k) * width);
  }
  return leaves;
}

void expect_m2(const Tensor& in, double relative) {
  const auto channels = static_cast<size_t>(in.shape()[1]);
  const auto want = reference::batch_norm_moments(doubles(in), channels);
  const Tensor stats = stats_of(in);
  const auto got = stats.span<const float>();
  for (size_t c = 0; c < channels; ++c) {
    const double deviation = std::sqrt(want.m2[c] / want.count);
    EXPECT_NEAR(got[c], want.mean[c], 0x1p-24 * (std::abs(want.mean[c]) + 8 * deviation));
  }
  EXPECT_TRUE(close(got.subspan(channels, channels), want.m2, {.rel = relative}));
}

TEST(BatchNormStats, SurviveAMeanFarAboveTheDeviation) {
  expect_m2(random_tensor({8, 16, 28, 28}, 1, 1e4F - 0.17F, 1e4F + 0.17F), 1e-6);
  expect_m2(random_tensor({3, 70, 14, 14}, 2, -1e4F - 0.17F, -1e4F + 0.17F), 1e-6);
  expect_m2(random_tensor({500, 3}, 3, 1e4F - 0.17F, 1e4F + 0.17F), 1e-6);
}

TEST(BatchNormStats, SurviveOutliersWhereverTheyLie) {
  for (const int64_t period : {3136, 3136 / 16, 3136 / 256}) {
    for (const int64_t first : {0, 5, 98}) {
      Tensor in = random_tensor({4, 16, 28, 28}, 4);
      for (int64_t p = first; p < 3136; p += period) in.data<float>()[p * 16 + 3] += 1e6F;
      expect_m2(in, 1e-5);
    }
  }
}

// Every pixel that the kernel could sample to estimate the mean is an outlier.
TEST(BatchNormStats, SurviveOutliersThatRecurAt256thsOfTheShard) {
  Tensor in = random_tensor({512, 1, 16, 32}, 5);
  for (int64_t p = 0; p < in.numel(); p += in.numel() / 256) in.data<float>()[p] += 1000;
  expect_m2(in, 2e-6);
}

TEST(BatchNormStats, AConstantChannelHasNoVariance) {
  Tensor in = random_tensor({2, 3, 7, 7}, 5);
  for (int64_t p = 0; p < 98; ++p) in.data<float>()[3 * p + 1] = 0.1F;
  const Tensor stats = stats_of(in);
  EXPECT_EQ(stats.data<float>()[1], 0.1F);
  EXPECT_EQ(stats.data<float>()[4], 0);
}

TEST(BatchNormStats, OnePixel) {
  const Tensor in = random_tensor({1, 20}, 6);
  const Tensor stats = stats_of(in);
  for (int64_t c = 0; c < 20; ++c) {
    EXPECT_EQ(stats.data<float>()[c], in.data<float>()[c]);
    EXPECT_EQ(stats.data<float>()[20 + c], 0);
  }
  EXPECT_EQ(stats.data<float>()[40], 1);
}

TEST(BatchNormStats, EmptyShardsGiveZerosAndMergingPassesTheOtherThrough) {
  const Tensor some = stats_of(random_tensor({3, 5, 2, 2}, 7));
  Stream stream;
  Tensor nothing = poisoned_tensor({1, 11}, Dtype::kF32);
  batch_norm_shard_stats(
      stream, Shards::single(0), Tensor::empty({0, 5, 2, 2}, Dtype::kF32), nothing);
  const Tensor empty = nothing.view({11});
  EXPECT_TRUE(same_bits(empty, Tensor::zeros({11}, Dtype::kF32)));
  EXPECT_TRUE(same_bits(merged(stacked({some, empty}), 4), some));
  EXPECT_TRUE(same_bits(merged(stacked({empty, some}), 4), some));
  EXPECT_TRUE(same_bits(merged(stacked({empty, empty, some}), 4), some));
  EXPECT_TRUE(same_bits(merged(stacked({empty, empty}), 4), empty));
  Tensor no_images = poisoned_tensor({11}, Dtype::kF32);
  no_images.data<float>()[10] = 0;
  EXPECT_TRUE(same_bits(merged(stacked({some, no_images}), 4), some));
  EXPECT_TRUE(same_bits(merged(stacked({no_images, some}), 4), some));
}

TEST(BatchNormStats, MergingIsTheBatchAsAWhole) {
  const Tensor in = random_tensor({10, 6, 3, 5}, 8, 2, 3);
  const std::vector<int64_t> edges = {0, 1, 4, 4, 6, 10};
  std::vector<Tensor> leaves;
  for (size_t k = 0; k + 1 < edges.size(); ++k) {
    if (edges[k] == edges[k + 1]) {
      leaves.push_back(Tensor::zeros({13}, Dtype::kF32));
    } else {
      leaves.push_back(stats_of(in.slice(edges[k], edges[k + 1] - edges[k])));
    }
  }
  const auto want = reference::batch_norm_moments(doubles(in), 6);
  const Tensor stats = merged(stacked(leaves), 15);
  EXPECT_TRUE(close(stats.span<const float>().first(6), want.mean, {.rel = 1e-6}));
  EXPECT_TRUE(close(stats.span<const float>().subspan(6, 6), want.m2, {.rel = 2e-6}));
  EXPECT_EQ(stats.data<float>()[12], 10);
}

TEST(BatchNormStats, MergesInTheTreesOrder) {
  std::vector<Tensor> leaf;
  for (uint64_t k = 0; k < 7; ++k) leaf.push_back(stats_of(random_tensor({2, 40, 3, 3}, 10 + k)));
  const auto pair = [](const Tensor& a, const Tensor& b) { return merged(stacked({a, b}), 9); };
  const Tensor left = pair(pair(leaf[0], leaf[1]), pair(leaf[2], leaf[3]));
  const Tensor right = pair(pair(leaf[4], leaf[5]), leaf[6]);
  const Tensor got = merged(stacked(leaf), 9);
  EXPECT_TRUE(same_bits(got, pair(left, right)));
  Tensor fold = leaf[0];
  for (size_t k = 1; k < leaf.size(); ++k) fold = pair(fold, leaf[k]);
  EXPECT_FALSE(same_bits(got, fold)) << "these leaves cannot tell the orders apart";
}

TEST(BatchNormStats, EveryLevelMergesToTheSameBits) {
  Stream stream;
  const Tensor leaves = stacked({stats_of(random_tensor({2, 37}, 1)),
                                 stats_of(random_tensor({3, 37}, 2)),
                                 stats_of(random_tensor({4, 37}, 3))});
  const Tensor want = merged(leaves, 1);
  for (BatchNormMergeStats* body : LS_ISA_BODIES(batch_norm_merge_stats)) {
    Tensor got = poisoned_tensor({75}, Dtype::kF32);
    body(stream, leaves, 1, got);
    EXPECT_TRUE(same_bits(got, want));
  }
}

TEST(BatchNormRunning, MatchesReference) {
  Stream stream;
  const Tensor in = random_tensor({3, 5, 2, 2}, 1);
  Tensor mean = random_tensor({5}, 2);
  Tensor var = random_tensor({5}, 3, 0.5F, 2);
  const auto batch = reference::batch_norm_moments(doubles(in), 5);
  const auto want_mean = reference::batch_norm_running(doubles(mean), batch.mean, 0.3);
  const auto want_var = reference::batch_norm_running(doubles(var), batch.variance(11), 0.3);
  batch_norm_update_running(stream, stats_of(in), 4, 0.3F, mean, var);
  EXPECT_TRUE(close(mean.span<const float>(), want_mean, {.rel = 1e-6, .abs = 1e-7}));
  EXPECT_TRUE(close(var.span<const float>(), want_var, {.rel = 1e-6}));
}

TEST(BatchNormRunning, DocumentedVector) {
  Stream stream;
  Tensor in = Tensor::empty({2, 1, 2, 2}, Dtype::kF32);
  for (int64_t i = 0; i < 8; ++i) in.data<float>()[i] = static_cast<float>(i);
  Tensor mean = Tensor::zeros({1}, Dtype::kF32);
  Tensor var = Tensor::zeros({1}, Dtype::kF32);
  *var.data<float>() = 1;
  batch_norm_update_running(stream, stats_of(in), 4, 0.1F, mean, var);
  EXPECT_FLOAT_EQ(*mean.data<float>(), 0.35F);
  EXPECT_FLOAT_EQ(*var.data<float>(), 1.5F);
}

TEST(BatchNormRunning, OneValueAChannelIsAnError) {
  Stream stream;
  Tensor mean = Tensor::zeros({3}, Dtype::kF32);
  Tensor var = Tensor::zeros({3}, Dtype::kF32);
  const Tensor stats = stats_of(random_tensor({1, 3}, 1));
  EXPECT_THROW(batch_norm_update_running(stream, stats, 1, 0.1F, mean, var), ShapeError);
  EXPECT_NO_THROW(batch_norm_update_running(stream, stats, 2, 0.1F, mean, var));
}

}  // namespace
}  // namespace lockstep::kernels::batch_norm_stats_test
