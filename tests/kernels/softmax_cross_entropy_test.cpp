#include "kernels/loss/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/softmax_cross_entropy.h"
#include "tests/support/class_loss_case.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::softmax_cross_entropy_test {
namespace {

using testing::close;
using testing::doubles;
using testing::floats_of;
using testing::get;
using testing::kFloatTypes;
using testing::labels_of;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::Tolerance;
using testing::values_of;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor logits_of(const std::vector<float>& values, int64_t classes) {
  Tensor logits =
      Tensor::empty({static_cast<int64_t>(values.size()) / classes, classes}, Dtype::kF32);
  std::ranges::copy(values, logits.data<float>());
  return logits;
}

Tensor spread_labels(int64_t images, int64_t classes) {
  Tensor labels = Tensor::empty({images}, Dtype::kI32);
  for (int64_t n = 0; n < images; ++n) {
    labels.data<int32_t>()[n] = static_cast<int32_t>(n * 7 % classes);
  }
  return labels;
}

std::vector<double> image(const Tensor& logits, int64_t n) {
  return values_of(logits.slice(n, 1));
}

struct Result {
  Tensor losses, rank, leaves, grad;
};

Result run(Stream& stream,
           const Shards& shards,
           const Tensor& logits,
           const Tensor& labels,
           const ClassLossParams& params = {},
           SoftmaxCrossEntropyForward* forward = softmax_cross_entropy_forward,
           SoftmaxCrossEntropyBackward* backward = softmax_cross_entropy_backward) {
  Result result{poisoned_tensor(labels.shape(), Dtype::kF32),
                poisoned_tensor(labels.shape(), Dtype::kI32),
                poisoned_tensor({shards.local()}, Dtype::kF32),
                poisoned_tensor(logits.shape(), logits.dtype())};
  forward(stream, shards, {logits, labels, params}, result.losses, result.rank, result.leaves);
  Tensor grad_loss = Tensor::empty({shards.local()}, Dtype::kF32);
  for (int64_t k = 0; k < shards.local(); ++k) {
    grad_loss.data<float>()[k] = static_cast<float>(k + 1);
  }
  backward(stream, shards, {logits, labels, params}, grad_loss, result.grad);
  return result;
}

struct Case {
  int64_t images, classes, shards;
  float smoothing;
};

class SoftmaxCrossEntropyCases : public ::testing::TestWithParam<Case> {};

struct Expected {
  std::vector<double> losses, gradient;
  std::vector<int32_t> ranks;
};

Expected expected(const Shards& shards,
                  const Tensor& logits,
                  const Tensor& labels,
                  float smoothing) {
  Expected want;
  for (int64_t k = 0; k < shards.local(); ++k) {
    for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) {
      const auto label = static_cast<size_t>(labels.data<int32_t>()[n]);
      want.losses.push_back(reference::cross_entropy(image(logits, n), label, smoothing));
      want.ranks.push_back(reference::target_rank(image(logits, n), label));
      for (const double g : reference::cross_entropy_gradient(image(logits, n), label, smoothing)) {
        want.gradient.push_back(g * static_cast<double>(k + 1) /
                                static_cast<double>(shards.step_images));
      }
    }
  }
  return want;
}

TEST_P(SoftmaxCrossEntropyCases, MatchesReferenceOnAnyNumberOfThreads) {
  const auto [images, classes, shard_count, smoothing] = GetParam();
  const Tensor labels = spread_labels(images, classes);
  const Shards shards = Shards::cut(images, shard_count, 1);
  for (const Dtype dtype : kFloatTypes) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor logits = rounded_to(dtype, random_tensor({images, classes}, 1, -4, 4));
    const Expected want = expected(shards, logits, labels, smoothing);
    Tolerance of_gradient = {.rel = 0x1p-23, .abs = 1e-12};
    if (dtype == Dtype::kF16) of_gradient = {.rel = 0x1p-11 + 0x1p-23, .abs = 0x1p-25};
    if (dtype == Dtype::kBF16) of_gradient.rel += 0x1p-8;
    for (const int threads : {1, 2, 3}) {
      Stream stream(Device::kCpu, threads);
      const Result got = run(stream, shards, logits, labels, {.label_smoothing = smoothing});
      EXPECT_TRUE(close(floats_of(got.losses), want.losses, {.rel = 0x1p-23, .abs = 1e-12}));
      EXPECT_TRUE(close(floats_of(got.grad), want.gradient, of_gradient));
      const auto ranks = got.rank.span<const int32_t>();
      EXPECT_EQ(std::vector<int32_t>(ranks.begin(), ranks.end()), want.ranks);
      for (int64_t k = 0; k < shard_count; ++k) {
        double sum = 0;
        for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) {
          sum += got.losses.data<float>()[n];
        }
        EXPECT_EQ(got.leaves.data<float>()[k],
                  static_cast<float>(sum / static_cast<double>(images)));
      }
    }
  }
}

TEST_P(SoftmaxCrossEntropyCases, SixteenBitGradientsAreF32Rounded) {
  const auto [images, classes, shard_count, smoothing] = GetParam();
  const Tensor labels = spread_labels(images, classes);
  const Shards shards = Shards::cut(images, shard_count, 1);
  Stream stream;
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    const Tensor logits = rounded_to(dtype, random_tensor({images, classes}, 2, -9, 9));
    const ClassLossParams params = {.label_smoothing = smoothing};
    const Result got = run(stream, shards, logits, labels, params);
    const Result want = run(stream, shards, rounded_to(Dtype::kF32, logits), labels, params);
    EXPECT_TRUE(same_bits(got.losses, want.losses));
    EXPECT_TRUE(same_bits(got.rank, want.rank));
    EXPECT_TRUE(same_bits(got.leaves, want.leaves));
    EXPECT_TRUE(same_bits(got.grad, rounded_to(dtype, want.grad)));
  }
}
INSTANTIATE_TEST_SUITE_P(Cases,
                         SoftmaxCrossEntropyCases,
                         ::testing::Values(Case{1, 1, 1, 0},
                                           Case{7, 10, 2, 0},
                                           Case{33, 10, 4, 0.1F},
                                           Case{3, 257, 1, 0.1F},
                                           Case{5, 3, 1, 1}));

TEST(SoftmaxCrossEntropy, IsDividedOnceMoreWhereThatIsAsked) {
  Stream stream;
  Shards shards = Shards::cut(6, 2, 1);
  Shards of_more = shards;
  of_more.step_images = 4 * shards.step_images;
  const Tensor logits = random_tensor({6, 5}, 1, -4, 4);
  const Tensor labels = spread_labels(6, 5);
  const Result got = run(stream, shards, logits, labels, {.divide_by = 4});
  const Result want = run(stream, of_more, logits, labels);
  EXPECT_TRUE(same_bits(got.losses, want.losses));
  EXPECT_TRUE(same_bits(got.leaves, want.leaves));
  EXPECT_TRUE(same_bits(got.grad, want.grad));
  EXPECT_NE(get(got.leaves, 0), get(run(stream, shards, logits, labels).leaves, 0));
  EXPECT_THROW(run(stream, shards, logits, labels, {.divide_by = 0}), ShapeError);
}

TEST(SoftmaxCrossEntropy, MixedImagesHaveTheLabelsOfTheirPair) {
  Shards shards = Shards::single(9);
  shards.offsets = {0, 5, 9};
  const Tensor logits = random_tensor({9, 7}, 1, -4, 4);
  const Tensor labels = spread_labels(9, 5);
  const int64_t partners[] = {4, 3, 2, 1, 0, 8, 7, 6, 5};
  for (const float mix : {0.0F, 0.3F, 0.5F, 1.0F}) {
    ClassLossParams params = {.label_smoothing = 0.1F, .mix = Tensor::empty({1}, Dtype::kF32)};
    *params.mix.data<float>() = mix;
    Expected want;
    for (int64_t n = 0; n < 9; ++n) {
      const auto label_of = [&](int64_t i) { return size_t(labels.data<int32_t>()[i]); };
      const reference::MixedLabel target(label_of(n), label_of(partners[n]), mix);
      const std::vector<double> row = image(logits, n);
      want.losses.push_back(reference::cross_entropy(row, target, 0.1F));
      want.ranks.push_back(reference::target_rank(row, target.heavier()));
      for (const double g : reference::cross_entropy_gradient(row, target, 0.1F)) {
        want.gradient.push_back(g * (n < 5 ? 1 : 2) / 9);
      }
    }
    for (const int threads : {1, 3}) {
      Stream stream(Device::kCpu, threads);
      const Result got = run(stream, shards, logits, labels, params);
      EXPECT_TRUE(close(floats_of(got.losses), want.losses, {.rel = 0x1p-23, .abs = 1e-12}));
      EXPECT_TRUE(close(floats_of(got.grad), want.gradient, {.rel = 0x1p-22, .abs = 1e-9}));
      const auto ranks = got.rank.span<const int32_t>();
      EXPECT_EQ(std::vector<int32_t>(ranks.begin(), ranks.end()), want.ranks) << mix;
    }
  }
}

// A class that is impossible and has no weight costs nothing.
TEST(SoftmaxCrossEntropy, AMixOfOneIsTheImageAlone) {
  Stream stream;
  const Tensor logits = logits_of({2, 1, -kInf, 2, 1, -kInf}, 3);
  Tensor mix = Tensor::empty({1}, Dtype::kF32);
  *mix.data<float>() = 1;
  const Result got = run(stream, Shards::single(2), logits, labels_of({0, 2}), {.mix = mix});
  const Result want = run(stream, Shards::single(2), logits, labels_of({0, 2}));
  EXPECT_TRUE(std::isfinite(got.losses.data<float>()[0]));
  EXPECT_TRUE(same_bits(got.losses, want.losses));
  EXPECT_TRUE(same_bits(got.grad, want.grad));
}

TEST(SoftmaxCrossEntropy, ReferenceGradientIsTheDerivative) {
  const std::vector<double> logits = doubles(random_tensor({1, 6}, 3, -3, 3));
  for (const double smoothing : {0.0, 0.1}) {
    const auto gradient = reference::cross_entropy_gradient(logits, 2, smoothing);
    const auto numerical = testing::numerical_gradient(
        [&](const std::vector<double>& x) { return reference::cross_entropy(x, 2, smoothing); },
        logits);
    for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(gradient[i], numerical[i], 1e-8) << i;
  }
}

TEST(SoftmaxCrossEntropy, MatchesValuesPrintedByPyTorch) {
  Stream stream;
  const Tensor logits = logits_of({2, 1, 0}, 3);
  const Tensor labels = labels_of({0});
  const Shards shards = Shards::single(1);
  EXPECT_NEAR(*run(stream, shards, logits, labels).losses.data<float>(), 0.4076059, 1e-7);
  EXPECT_NEAR(*run(stream, shards, logits, labels, {.label_smoothing = 0.1F}).losses.data<float>(),
              0.5076059,
              1e-7);
}

TEST(SoftmaxCrossEntropy, HugeLogitsDoNotOverflow) {
  Stream stream;
  const Tensor logits = logits_of({0, 1e38F, -1e38F, 3e4F, 3e4F, 0}, 3);
  const Result got = run(stream, Shards::single(2), logits, labels_of({1, 1}));
  EXPECT_EQ(got.losses.data<float>()[0], 0);
  EXPECT_NEAR(got.losses.data<float>()[1], std::log(2.0), 1e-7);
  EXPECT_EQ(got.grad.data<float>()[0], 0);
  EXPECT_EQ(got.grad.data<float>()[3], 0.25F);
  const Result wrong = run(stream, Shards::single(2), logits, labels_of({2, 2}));
  EXPECT_EQ(wrong.losses.data<float>()[0], 2e38F);
}

TEST(SoftmaxCrossEntropy, ImpossibleClassesOfMinusInfinityAreNotNan) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    const Tensor logits = rounded_to(dtype, logits_of({0, -kInf, 0}, 3));
    const Result got = run(stream, Shards::single(1), logits, labels_of({0}));
    EXPECT_NEAR(*got.losses.data<float>(), std::log(2.0), 1e-7);
    EXPECT_EQ(get(got.grad, 1), 0) << name_of(dtype);
  }
}

TEST(SoftmaxCrossEntropy, RankCountsGreaterLogitsAndEqualOnesBefore) {
  Stream stream;
  const Tensor logits = logits_of({1, 3, 1, 2, 1}, 5);
  const std::vector<int32_t> want = {2, 0, 3, 1, 4};
  for (int32_t label = 0; label < 5; ++label) {
    const Result got = run(stream, Shards::single(1), logits, labels_of({label}));
    EXPECT_EQ(*got.rank.data<int32_t>(), want[static_cast<size_t>(label)]) << "label " << label;
  }
}

class SoftmaxCrossEntropyTypes : public ::testing::TestWithParam<Dtype> {};

TEST_P(SoftmaxCrossEntropyTypes, NanStaysInItsImageAndRanksLast) {
  Stream stream;
  for (int64_t at = 0; at < 3; ++at) {
    Tensor logits = rounded_to(GetParam(), logits_of({0, 1, 2, 0, 1, 2}, 3));
    testing::set(logits, at, kNan);
    const Result got = run(stream, Shards::single(2), logits, labels_of({1, 2}));
    EXPECT_TRUE(std::isnan(got.losses.data<float>()[0]));
    EXPECT_EQ(got.rank.data<int32_t>()[0], 3);
    for (int64_t c = 0; c < 3; ++c) {
      EXPECT_TRUE(std::isnan(get(got.grad, c)));
      EXPECT_TRUE(std::isfinite(get(got.grad, 3 + c)));
    }
    EXPECT_TRUE(std::isfinite(got.losses.data<float>()[1]));
    EXPECT_TRUE(std::isnan(*got.leaves.data<float>()));
  }
}
INSTANTIATE_TEST_SUITE_P(Types, SoftmaxCrossEntropyTypes, ::testing::ValuesIn(kFloatTypes));

TEST(SoftmaxCrossEntropy, LeavesDivideByTheImagesOfTheWholeStep) {
  Stream stream;
  Shards shards = Shards::cut(1, 2, 1);  // the first shard is empty
  shards.step_images = 8;
  const Result got = run(stream, shards, logits_of({2, 1, 0}, 3), labels_of({0}));
  EXPECT_EQ(got.leaves.data<float>()[0], 0);
  EXPECT_NEAR(got.leaves.data<float>()[1], 0.4076059 / 8, 1e-8);
  EXPECT_NEAR(got.grad.data<float>()[1], std::exp(-1.4076059) * 2 / 8, 1e-7);
}

TEST_P(SoftmaxCrossEntropyTypes, InstructionSetsAgree) {
  Stream stream;
  const Tensor logits = rounded_to(GetParam(), random_tensor({9, 37}, 5, -9, 9));
  const Tensor labels = spread_labels(9, 37);
  const Shards shards = Shards::cut(9, 2, 1);
  Tensor mix = Tensor::empty({1}, Dtype::kF32);
  *mix.data<float>() = 0.3F;
  const ClassLossParams params = {.label_smoothing = 0.1F, .mix = mix};
  const Result want = run(stream, shards, logits, labels, params);
  const auto forwards = LS_ISA_BODIES(softmax_cross_entropy_forward);
  const auto backwards = LS_ISA_BODIES(softmax_cross_entropy_backward);
  for (size_t i = 0; i < forwards.size(); ++i) {
    const Result got = run(stream, shards, logits, labels, params, forwards[i], backwards[i]);
    EXPECT_TRUE(same_bits(got.losses, want.losses));
    EXPECT_TRUE(same_bits(got.rank, want.rank));
    EXPECT_TRUE(same_bits(got.leaves, want.leaves));
    EXPECT_TRUE(same_bits(got.grad, want.grad));
  }
}

TEST(SoftmaxCrossEntropy, NamesTheFirstLabelOutOfRange) {
  Stream stream;
  const Tensor logits = Tensor::zeros({4, 10}, Dtype::kF32);
  try {
    run(stream, Shards::single(4), logits, labels_of({0, 9, 10, -3}));
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "[softmax_cross_entropy] label 10 of image 2 is out of range");
    EXPECT_EQ(error.why(), "there are 10 logits per image, so labels are 0 to 9");
  }
  EXPECT_THROW(run(stream, Shards::single(4), logits, labels_of({0, -1, 0, 0})), DataError);
}

TEST(SoftmaxCrossEntropy, RejectsOtherShapes) {
  Stream stream;
  const Tensor logits = Tensor::zeros({2, 3}, Dtype::kF32);
  const Shards shards = Shards::single(2);
  const Tensor no_classes = Tensor::zeros({2, 0}, Dtype::kF32);
  EXPECT_THROW(run(stream, shards, logits, labels_of({0})), ShapeError);
  EXPECT_THROW(run(stream, Shards::single(3), logits, labels_of({0, 0})), ShapeError);
  EXPECT_THROW(run(stream, shards, logits, labels_of({0, 0}), {.label_smoothing = 1.5F}),
               ShapeError);
  EXPECT_THROW(run(stream, shards, logits, labels_of({0, 0}), {.label_smoothing = kNan}),
               ShapeError);
  const ClassLossParams two_mixes = {.mix = Tensor::zeros({2}, Dtype::kF32)};
  EXPECT_THROW(run(stream, shards, logits, labels_of({0, 0}), two_mixes), ShapeError);
  EXPECT_THROW(run(stream, shards, no_classes, labels_of({0, 0})), ShapeError);
  EXPECT_THROW(run(stream, shards, logits, Tensor::zeros({2}, Dtype::kI64)), DtypeError);
}

TEST(SoftmaxCrossEntropy, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  auto [logits, labels, losses, rank, leaves, grad] = testing::DryClassLoss();
  const Shards shards = Shards::single(4);
  softmax_cross_entropy_forward(stream, shards, {logits, labels}, losses, rank, leaves);
  softmax_cross_entropy_backward(stream, shards, {logits, labels}, leaves, grad);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].bytes, 160 + 3 * 16 + 4);
  EXPECT_EQ(stream.ledger()[1].bytes, 2 * 160 + 16 + 4);
}

}  // namespace
}  // namespace lockstep::kernels::softmax_cross_entropy_test
