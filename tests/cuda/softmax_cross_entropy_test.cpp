#include "kernels/loss/softmax_cross_entropy.h"

#include <cmath>
#include <limits>
#include <ostream>
#include <vector>

#include "tests/reference/softmax_cross_entropy.h"
#include "tests/support/class_loss_case.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::softmax_cross_entropy_test {
namespace {

using testing::close;
using testing::floats_of;
using testing::get;
using testing::ints_of;
using testing::kFloatTypes;
using testing::labels_of;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Result {
  Tensor losses, rank, leaves, grad;
};

class CudaCrossEntropy : public testing::CudaTest {
 protected:
  // Everything on the CPU; shard k's gradient of the loss is k + 1. Misaligned: the logits.
  Result run(const Shards& shards,
             const Tensor& logits,
             const Tensor& labels,
             float smoothing = 0,
             bool misaligned = false,
             const Tensor& mix = {},
             int64_t divide_by = 1) {
    const ClassLossParams params = {.label_smoothing = smoothing,
                                    .mix = mix.defined() ? upload(mix) : Tensor(),
                                    .divide_by = divide_by};
    const Tensor given = misaligned ? upload_misaligned(logits) : upload(logits);
    const Tensor targets = upload(labels);
    Result result{poisoned(labels.shape(), Dtype::kF32),
                  poisoned(labels.shape(), Dtype::kI32),
                  poisoned({shards.local()}, Dtype::kF32),
                  poisoned(logits.shape(), logits.dtype())};
    softmax_cross_entropy_forward(
        stream_, shards, {given, targets, params}, result.losses, result.rank, result.leaves);
    Tensor grad_loss = Tensor::empty({shards.local()}, Dtype::kF32);
    for (int64_t k = 0; k < shards.local(); ++k) testing::set(grad_loss, k, double(k + 1));
    softmax_cross_entropy_backward(
        stream_, shards, {given, targets, params}, upload(grad_loss), result.grad);
    return {download(result.losses),
            download(result.rank),
            download(result.leaves),
            download(result.grad)};
  }

  Result run(const std::vector<double>& logits, const std::vector<int32_t>& labels) {
    const auto images = static_cast<int64_t>(labels.size());
    const Shape shape{images, static_cast<int64_t>(logits.size()) / images};
    return run(Shards::single(images), tensor_of(logits, shape, Dtype::kF32), labels_of(labels));
  }
};

struct Case {
  int64_t images, classes, shards;
  float smoothing;

  friend void PrintTo(const Case& c, std::ostream* out) {  // NOLINT: GoogleTest's name
    *out << c.images << "x" << c.classes << " in " << c.shards << ", smoothing " << c.smoothing;
  }
};

class CudaCrossEntropyCases : public CudaCrossEntropy,
                              public ::testing::WithParamInterface<Case> {};

// A loss leaf is the sum of its shard's losses in image order, in double.
void expect_leaves(const Result& got, const Shards& shards) {
  for (int64_t k = 0; k < shards.local(); ++k) {
    double sum = 0;
    for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) sum += get(got.losses, n);
    const double want = shards.count(k) == 0 ? 0 : sum / static_cast<double>(shards.step_images);
    EXPECT_EQ(got.leaves.data<float>()[k], static_cast<float>(want)) << "shard " << k;
  }
}

TEST_P(CudaCrossEntropyCases, MatchReference) {
  const auto [images, classes, shard_count, smoothing] = GetParam();
  Shards shards = Shards::cut(images, shard_count, 1);
  shards.step_images = images + 3;
  std::vector<int32_t> labels;
  for (int64_t n = 0; n < images; ++n) labels.push_back(static_cast<int32_t>(n * 7 % classes));
  for (const Dtype dtype : kFloatTypes) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor logits = rounded_to(dtype, random_tensor({images, classes}, 1, -4, 4));
    std::vector<double> losses;
    std::vector<double> gradient;
    std::vector<int32_t> ranks;
    for (int64_t k = 0; k < shard_count; ++k) {
      for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) {
        const auto row = values_of(logits.slice(n, 1));
        const auto label = static_cast<size_t>(labels[static_cast<size_t>(n)]);
        losses.push_back(reference::cross_entropy(row, label, smoothing));
        ranks.push_back(reference::target_rank(row, label));
        for (const double g : reference::cross_entropy_gradient(row, label, smoothing)) {
          gradient.push_back(g * static_cast<double>(k + 1) /
                             static_cast<double>(shards.step_images));
        }
      }
    }
    const Result got = run(shards, logits, labels_of(labels), smoothing);
    EXPECT_TRUE(close(floats_of(got.losses), losses, {.rel = 1e-6, .abs = 1e-6}));
    EXPECT_EQ(ints_of(got.rank), ranks);
    const double rounding = dtype == Dtype::kF32 ? 0 : dtype == Dtype::kF16 ? 0x1p-11 : 0x1p-8;
    EXPECT_TRUE(close(floats_of(got.grad), gradient, {.rel = rounding + 2e-6, .abs = 2e-7}));
    expect_leaves(got, shards);

    const Result misaligned = run(shards, logits, labels_of(labels), smoothing, true);
    EXPECT_TRUE(same_bits(misaligned.losses, got.losses));
    EXPECT_TRUE(same_bits(misaligned.rank, got.rank));
    EXPECT_TRUE(same_bits(misaligned.grad, got.grad));
  }
}
INSTANTIATE_TEST_SUITE_P(Cases,
                         CudaCrossEntropyCases,
                         ::testing::Values(Case{1, 1, 1, 0},
                                           Case{0, 10, 2, 0},
                                           Case{7, 10, 3, 0},
                                           Case{5, 16, 8, 0.1F},  // empty shards
                                           Case{2, 257, 1, 0.1F},
                                           Case{2, 1000, 2, 0.1F},
                                           Case{1, 4104, 1, 0},
                                           Case{5, 3, 1, 1}));

TEST_F(CudaCrossEntropy, MixedImagesHaveTheLabelsOfTheirPair) {
  Shards shards = Shards::single(9);
  shards.offsets = {0, 5, 9};
  const Tensor logits = random_tensor({9, 7}, 1, -4, 4);
  const std::vector<int32_t> labels = {0, 3, 1, 4, 2, 0, 3, 1, 4};
  const size_t partners[] = {4, 3, 2, 1, 0, 8, 7, 6, 5};
  for (const double mix : {0.0, 0.25, 0.5, 1.0}) {
    const Result got = run(shards,
                           logits,
                           labels_of(labels),
                           0.1F,
                           false,
                           tensor_of(std::vector{mix}, {1}, Dtype::kF32));
    for (size_t n = 0; n < 9; ++n) {
      const auto at = static_cast<int64_t>(n);
      const reference::MixedLabel target(size_t(labels[n]), size_t(labels[partners[n]]), mix);
      const std::vector<double> row = values_of(logits.slice(at, 1));
      EXPECT_NEAR(get(got.losses, at), reference::cross_entropy(row, target, 0.1F), 2e-6);
      EXPECT_EQ(ints_of(got.rank)[n], reference::target_rank(row, target.heavier()));
      const auto gradient = reference::cross_entropy_gradient(row, target, 0.1F);
      for (size_t c = 0; c < 7; ++c) {
        EXPECT_NEAR(get(got.grad, at * 7 + int64_t(c)), gradient[c] * (n < 5 ? 1 : 2) / 9, 2e-7);
      }
    }
  }
}

TEST_F(CudaCrossEntropy, IsDividedOnceMoreWhereThatIsAsked) {
  const Shards shards = Shards::cut(6, 2, 1);
  Shards of_more = shards;
  of_more.step_images = 4 * shards.step_images;
  const Tensor logits = random_tensor({6, 5}, 1, -4, 4);
  const Tensor labels = labels_of({0, 1, 2, 3, 4, 0});
  const Result got = run(shards, logits, labels, 0, false, {}, 4);
  const Result want = run(of_more, logits, labels);
  EXPECT_TRUE(same_bits(got.losses, want.losses));
  EXPECT_TRUE(same_bits(got.leaves, want.leaves));
  EXPECT_TRUE(same_bits(got.grad, want.grad));
}

TEST_F(CudaCrossEntropy, ManyClassesAndManyImages) {
  const Tensor wide = random_tensor({1, 21841}, 2, -4, 4);
  const Result got = run(Shards::single(1), wide, labels_of({21840}), 0.1F);
  EXPECT_NEAR(get(got.losses, 0), reference::cross_entropy(values_of(wide), 21840, 0.1F), 2e-6);
  EXPECT_EQ(ints_of(got.rank).front(), reference::target_rank(values_of(wide), 21840));
  Shards shards = Shards::single(132);
  shards.offsets = {0, 2, 132};  // a leaf of more images than are fetched at once
  const Tensor tall = random_tensor({132, 2}, 3);
  expect_leaves(run(shards, tall, labels_of(std::vector<int32_t>(132, 1))), shards);
}

TEST_F(CudaCrossEntropy, AnImageHasTheBitsOfItsOwnRun) {
  for (const int64_t classes : {10, 24}) {
    const Tensor logits = random_tensor({4, classes}, 4, -9, 9);
    const Shards step = Shards::single(4);
    const Result together = run(step, logits, labels_of({1, 2, 3, 4}), 0.1F);
    for (int64_t n = 0; n < 4; ++n) {
      Shards alone = Shards::single(1);
      alone.step_images = 4;
      const Result got =
          run(alone, logits.slice(n, 1), labels_of({static_cast<int32_t>(n + 1)}), 0.1F);
      EXPECT_TRUE(same_bits(got.losses, together.losses.slice(n, 1)));
      EXPECT_TRUE(same_bits(got.grad, together.grad.slice(n, 1)));
    }
  }
}

TEST_F(CudaCrossEntropy, HugeLogitsDoNotOverflow) {
  const Result got = run({0, 1e38, -1e38, 3e4, 3e4, 0, 0, 3e38, -3e38}, {1, 1, 2});
  EXPECT_EQ(get(got.losses, 0), 0);
  EXPECT_NEAR(get(got.losses, 1), std::log(2.0), 1e-7);
  EXPECT_EQ(get(got.losses, 2), kInf);  // 6e38 is beyond f32
  EXPECT_EQ(get(got.grad, 0), 0);
  EXPECT_FLOAT_EQ(static_cast<float>(get(got.grad, 3)), 0.5F / 3);
}

TEST_F(CudaCrossEntropy, ImpossibleClassesOfMinusInfinityAreNotNan) {
  std::vector<double> logits(300, -kInf);  // whole packs and whole warps of them
  logits[7] = logits[290] = 5;
  const Result got = run(logits, {7});
  EXPECT_NEAR(get(got.losses, 0), std::log(2.0), 1e-7);
  EXPECT_EQ(get(got.grad, 8), 0);
  EXPECT_EQ(get(got.grad, 290), 0.5);
  EXPECT_TRUE(std::isnan(get(run(std::vector<double>(5, -kInf), {0}).losses, 0)));
}

TEST_F(CudaCrossEntropy, RankCountsGreaterLogitsAndEqualOnesBefore) {
  const std::vector<int32_t> want = {2, 0, 3, 1, 4};
  for (int32_t label = 0; label < 5; ++label) {
    EXPECT_EQ(ints_of(run({1, 3, 1, 2, 1}, {label}).rank).front(),
              want[static_cast<size_t>(label)]);
    // Classes that are not there do not rank before one of -infinity.
    EXPECT_EQ(ints_of(run(std::vector<double>(5, -kInf), {label}).rank).front(), label);
  }
}

TEST_F(CudaCrossEntropy, NanStaysInItsImageAndRanksLast) {
  for (size_t at = 0; at < 3; ++at) {
    std::vector<double> logits = {0, 1, 2, 0, 1, 2};
    logits[at] = kNan;
    const Result got = run(logits, {1, 2});
    EXPECT_TRUE(std::isnan(get(got.losses, 0)));
    EXPECT_EQ(ints_of(got.rank).front(), 3);
    for (int64_t c = 0; c < 3; ++c) {
      EXPECT_TRUE(std::isnan(get(got.grad, c)));
      EXPECT_TRUE(std::isfinite(get(got.grad, 3 + c)));
    }
    EXPECT_TRUE(std::isfinite(get(got.losses, 1)));
    EXPECT_TRUE(std::isnan(get(got.leaves, 0)));
  }
}

TEST_F(CudaCrossEntropy, LabelOutOfRangeMakesItsImageNan) {
  for (const int32_t label : {3, -1, std::numeric_limits<int32_t>::max()}) {
    const Result got = run({0, 1, 2, 0, 1, 2}, {label, 2});
    EXPECT_TRUE(std::isnan(get(got.losses, 0)));
    EXPECT_TRUE(std::isfinite(get(got.losses, 1)));
    EXPECT_EQ(ints_of(got.rank), (std::vector<int32_t>{3, 0}));
    for (int64_t c = 0; c < 3; ++c) {
      EXPECT_TRUE(std::isnan(get(got.grad, c)));
      EXPECT_TRUE(std::isfinite(get(got.grad, 3 + c)));
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels::softmax_cross_entropy_test
