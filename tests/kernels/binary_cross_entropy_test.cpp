#include "kernels/loss/binary_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <ostream>
#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/binary_cross_entropy.h"
#include "tests/support/class_loss_case.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/finite_difference.h"
#include "tests/support/float_types.h"
#include "tests/support/golden.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::binary_cross_entropy_test {
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
using testing::values_of;

Tensor spread_labels(int64_t images, int64_t classes) {
  Tensor labels = Tensor::empty({images}, Dtype::kI32);
  for (int64_t n = 0; n < images; ++n) {
    labels.data<int32_t>()[n] = static_cast<int32_t>(n * 7 % classes);
  }
  return labels;
}

Tensor mix_of(float mix) {
  Tensor tensor = Tensor::empty({1}, Dtype::kF32);
  *tensor.data<float>() = mix;
  return tensor;
}

struct Rule {
  ClassLossParams params = {};
  std::optional<float> threshold = {};
};

struct Result {
  Tensor losses, rank, leaves, grad;
};

// Shard k's gradient of the loss is k + 1.
Result run(Stream& stream,
           const Shards& shards,
           const Tensor& logits,
           const Tensor& labels,
           const Rule& rule = {},
           BinaryCrossEntropyForward* forward = binary_cross_entropy_forward,
           BinaryCrossEntropyBackward* backward = binary_cross_entropy_backward) {
  Result result{poisoned_tensor(labels.shape(), Dtype::kF32),
                poisoned_tensor(labels.shape(), Dtype::kI32),
                poisoned_tensor({shards.local()}, Dtype::kF32),
                poisoned_tensor(logits.shape(), logits.dtype())};
  const BinaryCrossEntropyArgs args{logits, labels, rule.params, rule.threshold};
  forward(stream, shards, args, result.losses, result.rank, result.leaves);
  Tensor grad_loss = Tensor::empty({shards.local()}, Dtype::kF32);
  for (int64_t k = 0; k < shards.local(); ++k) testing::set(grad_loss, k, double(k + 1));
  backward(stream, shards, args, grad_loss, result.grad);
  return result;
}

TEST(BinaryCrossEntropy, IsTimms) {
  Stream stream;
  for (const auto& golden : testing::golden_cases("binary_cross_entropy")) {
    SCOPED_TRACE(golden.name());
    const Tensor logits = golden.tensor("logits");
    const Tensor wide_labels = golden.tensor("labels");
    const int64_t n = logits.shape()[0];
    Tensor labels = Tensor::empty({n}, Dtype::kI32);
    std::ranges::copy(wide_labels.span<int64_t>(), labels.data<int32_t>());
    Rule rule{.params = {.label_smoothing = static_cast<float>(golden.number("smoothing"))}};
    if (golden.number("mix") < 1) rule.params.mix = mix_of(float(golden.number("mix")));
    if (golden.number("threshold") >= 0) rule.threshold = float(golden.number("threshold"));
    const Result got = run(stream, Shards::single(n), logits, labels, rule);
    EXPECT_TRUE(close(got.leaves.span<float>(), golden.tensor("loss").span<float>(), {1e-6, 1e-7}));
    EXPECT_TRUE(
        close(got.grad.span<float>(), golden.tensor("grad_logits").span<float>(), {1e-6, 1e-8}));
  }
}

struct Case {
  int64_t images, classes, shards;
  float smoothing;
  std::optional<float> threshold = {};

  friend void PrintTo(const Case& c, std::ostream* out) {  // NOLINT: GoogleTest's name
    *out << c.images << "x" << c.classes << " in " << c.shards << ", smoothing " << c.smoothing;
  }
};

class BinaryCrossEntropyCases : public ::testing::TestWithParam<Case> {};

TEST_P(BinaryCrossEntropyCases, MatchesReferenceOnAnyNumberOfThreads) {
  const auto [images, classes, shard_count, smoothing, threshold] = GetParam();
  const Tensor labels = spread_labels(images, classes);
  const Shards shards = Shards::cut(images, shard_count, 1);
  for (const float mix : {1.0F, 0.75F}) {
    for (const Dtype dtype : kFloatTypes) {
      SCOPED_TRACE(name_of(dtype));
      const Tensor logits = rounded_to(dtype, random_tensor({images, classes}, 1, -4, 4));
      std::vector<double> losses;
      std::vector<double> gradient;
      std::vector<int32_t> ranks;
      for (int64_t k = 0; k < shard_count; ++k) {
        for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) {
          const auto label_at = [&](int64_t i) { return size_t(labels.data<int32_t>()[i]); };
          const int64_t partner = shards.begin(k) + shards.begin(k + 1) - 1 - n;
          const reference::MixedLabel label(label_at(n), label_at(partner), mix);
          const reference::BinaryTargetRule rule{smoothing, threshold.value_or(-1)};
          const std::vector<double> row = values_of(logits.slice(n, 1));
          losses.push_back(reference::binary_cross_entropy(row, label, rule));
          ranks.push_back(reference::target_rank(row, label.heavier()));
          for (const double g : reference::binary_cross_entropy_gradient(row, label, rule)) {
            gradient.push_back(g * double(k + 1) / double(shards.step_images));
          }
        }
      }
      const double rounding = dtype == Dtype::kF32 ? 0 : dtype == Dtype::kF16 ? 0x1p-11 : 0x1p-8;
      for (const int threads : {1, 2, 3}) {
        Stream stream(Device::kCpu, threads);
        const Rule rule{{.label_smoothing = smoothing, .mix = mix_of(mix)}, threshold};
        const Result got = run(stream, shards, logits, labels, rule);
        EXPECT_TRUE(close(floats_of(got.losses), losses, {.rel = 1e-6, .abs = 1e-7}));
        EXPECT_TRUE(close(floats_of(got.grad), gradient, {.rel = rounding + 1e-6, .abs = 6e-8}));
        const auto got_ranks = got.rank.span<const int32_t>();
        EXPECT_EQ(std::vector<int32_t>(got_ranks.begin(), got_ranks.end()), ranks);
        for (int64_t k = 0; k < shard_count; ++k) {
          double sum = 0;
          for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) sum += get(got.losses, n);
          EXPECT_EQ(get(got.leaves, k), static_cast<float>(sum / double(images)));
        }
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Cases,
                         BinaryCrossEntropyCases,
                         ::testing::Values(Case{1, 1, 1, 0},
                                           Case{7, 10, 2, 0},
                                           Case{9, 10, 4, 0.1F},
                                           Case{3, 257, 1, 0.1F, 0.2F},
                                           Case{7, 10, 2, 0, 0.3F},
                                           Case{5, 3, 1, 1}));

TEST(BinaryCrossEntropy, ReferenceGradientIsTheDerivative) {
  const std::vector<double> logits = doubles(random_tensor({1, 6}, 3, -3, 3));
  for (const reference::BinaryTargetRule& rule :
       {reference::BinaryTargetRule{}, {.smoothing = 0.1}, {.threshold = 0.2}}) {
    const reference::MixedLabel label(2, 4, 0.7);
    const auto gradient = reference::binary_cross_entropy_gradient(logits, label, rule);
    const auto numerical = testing::numerical_gradient(
        [&](const std::vector<double>& x) {
          return reference::binary_cross_entropy(x, label, rule);
        },
        logits);
    for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(gradient[i], numerical[i], 1e-8) << i;
  }
}

// 0.25 of another class is kept by a threshold below it, and not by itself.
TEST(BinaryCrossEntropy, TargetsAboveTheThresholdAreOne) {
  Stream stream;
  const Tensor logits = Tensor::zeros({2, 4}, Dtype::kF32);
  const Tensor labels = labels_of({0, 2});
  const auto signs_at = [&](float threshold) {
    const Rule rule{{.mix = mix_of(0.75F)}, threshold};
    const Result got = run(stream, Shards::single(2), logits, labels, rule);
    std::vector<int> signs;
    for (int64_t i = 0; i < 4; ++i) signs.push_back(get(got.grad, i) < 0 ? 1 : 0);
    return signs;
  };
  EXPECT_EQ(signs_at(0.2F), (std::vector{1, 0, 1, 0}));
  EXPECT_EQ(signs_at(0.25F), (std::vector{1, 0, 0, 0}));
  EXPECT_EQ(signs_at(0.75F), (std::vector{0, 0, 0, 0}));
}

TEST(BinaryCrossEntropy, HugeLogitsDoNotOverflow) {
  Stream stream;
  Tensor logits = Tensor::zeros({1, 2}, Dtype::kF32);
  testing::set(logits, 0, 3e4);
  testing::set(logits, 1, -3e4);
  const Result right = run(stream, Shards::single(1), logits, labels_of({0}));
  EXPECT_EQ(get(right.losses, 0), 0);
  EXPECT_EQ(get(right.grad, 0), 0);
  const Result wrong = run(stream, Shards::single(1), logits, labels_of({1}));
  EXPECT_EQ(get(wrong.losses, 0), 3e4);
  EXPECT_EQ(get(wrong.grad, 0), 0.5);
  EXPECT_EQ(get(wrong.grad, 1), -0.5);
}

TEST(BinaryCrossEntropy, NanStaysInItsImageAndRanksLast) {
  Stream stream;
  Tensor logits = random_tensor({2, 3}, 1);
  testing::set(logits, 1, std::numeric_limits<double>::quiet_NaN());
  const Result got = run(stream, Shards::single(2), logits, labels_of({1, 2}));
  EXPECT_TRUE(std::isnan(get(got.losses, 0)));
  EXPECT_TRUE(std::isfinite(get(got.losses, 1)));
  EXPECT_EQ(got.rank.data<int32_t>()[0], 3);
  EXPECT_TRUE(std::isnan(get(got.grad, 1)));
  EXPECT_TRUE(std::isnan(get(got.leaves, 0)));
}

TEST(BinaryCrossEntropy, InstructionSetsAgree) {
  Stream stream;
  const Tensor labels = spread_labels(9, 37);
  const Shards shards = Shards::cut(9, 2, 1);
  const auto forwards = LS_ISA_BODIES(binary_cross_entropy_forward);
  const auto backwards = LS_ISA_BODIES(binary_cross_entropy_backward);
  for (const Dtype dtype : kFloatTypes) {
    const Tensor logits = rounded_to(dtype, random_tensor({9, 37}, 5, -9, 9));
    const Rule rule{{.label_smoothing = 0.1F, .mix = mix_of(0.3F), .divide_by = 2}};
    const Result want = run(stream, shards, logits, labels, rule);
    for (size_t i = 0; i < forwards.size(); ++i) {
      const Result got = run(stream, shards, logits, labels, rule, forwards[i], backwards[i]);
      EXPECT_TRUE(same_bits(got.losses, want.losses));
      EXPECT_TRUE(same_bits(got.rank, want.rank));
      EXPECT_TRUE(same_bits(got.leaves, want.leaves));
      EXPECT_TRUE(same_bits(got.grad, want.grad));
    }
  }
}

TEST(BinaryCrossEntropy, IsDividedOnceMoreWhereThatIsAsked) {
  Stream stream;
  const Shards shards = Shards::cut(6, 2, 1);
  Shards of_more = shards;
  of_more.step_images = 4 * shards.step_images;
  const Tensor logits = random_tensor({6, 5}, 1, -4, 4);
  const Tensor labels = spread_labels(6, 5);
  const Result got = run(stream, shards, logits, labels, {.params = {.divide_by = 4}});
  const Result want = run(stream, of_more, logits, labels);
  EXPECT_TRUE(same_bits(got.losses, want.losses));
  EXPECT_TRUE(same_bits(got.leaves, want.leaves));
  EXPECT_TRUE(same_bits(got.grad, want.grad));
}

TEST(BinaryCrossEntropy, RejectsWhatDoesNotFit) {
  Stream stream;
  const Tensor logits = Tensor::zeros({2, 3}, Dtype::kF32);
  const Shards shards = Shards::single(2);
  EXPECT_THROW(run(stream, shards, logits, labels_of({0})), ShapeError);
  EXPECT_THROW(run(stream, shards, logits, labels_of({0, 0}), {{.label_smoothing = 1.5F}}),
               ShapeError);
  EXPECT_THROW(run(stream, shards, logits, labels_of({0, 0}), {{}, std::nanf("")}), ShapeError);
  try {
    run(stream, shards, logits, labels_of({0, 3}));
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "[binary_cross_entropy] label 3 of image 1 is out of range");
  }
}

TEST(BinaryCrossEntropy, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  auto [logits, labels, losses, rank, leaves, grad] = testing::DryClassLoss();
  const Shards shards = Shards::single(4);
  binary_cross_entropy_forward(stream, shards, {logits, labels}, losses, rank, leaves);
  binary_cross_entropy_backward(stream, shards, {logits, labels}, leaves, grad);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].bytes, 160 + 3 * 16 + 4);
  EXPECT_EQ(stream.ledger()[1].bytes, 2 * 160 + 16 + 4);
}

}  // namespace
}  // namespace lockstep::kernels::binary_cross_entropy_test
