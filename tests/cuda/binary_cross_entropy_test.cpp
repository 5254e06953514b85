#include "kernels/loss/binary_cross_entropy.h"

#include <cmath>
#include <limits>
#include <ostream>
#include <vector>

#include "tests/reference/binary_cross_entropy.h"
#include "tests/support/class_loss_case.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::binary_cross_entropy_test {
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

struct Rule {
  float smoothing = 0;
  double mix = 1;
  std::optional<float> threshold = {};
  int64_t divide_by = 1;
};

struct Result {
  Tensor losses, rank, leaves, grad;
};

class CudaBinaryCrossEntropy : public testing::CudaTest {
 protected:
  // Everything on the CPU; shard k's gradient of the loss is k + 1. Misaligned: the logits.
  Result run(const Shards& shards,
             const Tensor& logits,
             const std::vector<int32_t>& labels,
             const Rule& rule = {},
             bool misaligned = false) {
    const ClassLossParams params = {
        .label_smoothing = rule.smoothing,
        .mix = upload(tensor_of(std::vector{rule.mix}, {1}, Dtype::kF32)),
        .divide_by = rule.divide_by};
    const Tensor given = misaligned ? upload_misaligned(logits) : upload(logits);
    const Tensor targets = upload(labels_of(labels));
    const BinaryCrossEntropyArgs args{given, targets, params, rule.threshold};
    Result result{poisoned(targets.shape(), Dtype::kF32),
                  poisoned(targets.shape(), Dtype::kI32),
                  poisoned({shards.local()}, Dtype::kF32),
                  poisoned(logits.shape(), logits.dtype())};
    binary_cross_entropy_forward(stream_, shards, args, result.losses, result.rank, result.leaves);
    Tensor grad_loss = Tensor::empty({shards.local()}, Dtype::kF32);
    for (int64_t k = 0; k < shards.local(); ++k) testing::set(grad_loss, k, double(k + 1));
    binary_cross_entropy_backward(stream_, shards, args, upload(grad_loss), result.grad);
    return {download(result.losses),
            download(result.rank),
            download(result.leaves),
            download(result.grad)};
  }
};

struct Case {
  int64_t images, classes, shards;
  Rule rule;

  friend void PrintTo(const Case& c, std::ostream* out) {  // NOLINT: GoogleTest's name
    *out << c.images << "x" << c.classes << " in " << c.shards << ", mix " << c.rule.mix;
  }
};

class CudaBinaryCrossEntropyCases : public CudaBinaryCrossEntropy,
                                    public ::testing::WithParamInterface<Case> {};

TEST_P(CudaBinaryCrossEntropyCases, MatchReference) {
  const auto& [images, classes, shard_count, rule] = GetParam();
  const Shards shards = Shards::cut(images, shard_count, 1);
  std::vector<int32_t> labels;
  for (int64_t n = 0; n < images; ++n) labels.push_back(static_cast<int32_t>(n * 7 % classes));
  const auto label_at = [&](int64_t n) { return size_t(labels[size_t(n)]); };
  for (const Dtype dtype : kFloatTypes) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor logits = rounded_to(dtype, random_tensor({images, classes}, 1, -4, 4));
    std::vector<double> losses;
    std::vector<double> gradient;
    std::vector<int32_t> ranks;
    for (int64_t k = 0; k < shard_count; ++k) {
      for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) {
        const int64_t partner = shards.begin(k) + shards.begin(k + 1) - 1 - n;
        const reference::MixedLabel label(label_at(n), label_at(partner), rule.mix);
        const reference::BinaryTargetRule targets{rule.smoothing, rule.threshold.value_or(-1)};
        const auto row = values_of(logits.slice(n, 1));
        losses.push_back(reference::binary_cross_entropy(row, label, targets));
        ranks.push_back(reference::target_rank(row, label.heavier()));
        for (const double g : reference::binary_cross_entropy_gradient(row, label, targets)) {
          gradient.push_back(g * double(k + 1) / double(images * rule.divide_by));
        }
      }
    }
    const Result got = run(shards, logits, labels, rule);
    EXPECT_TRUE(close(floats_of(got.losses), losses, {.rel = 1e-6, .abs = 1e-6}));
    EXPECT_EQ(ints_of(got.rank), ranks);
    const double rounding = dtype == Dtype::kF32 ? 0 : dtype == Dtype::kF16 ? 0x1p-11 : 0x1p-8;
    EXPECT_TRUE(close(floats_of(got.grad), gradient, {.rel = rounding + 2e-6, .abs = 2e-7}));
    for (int64_t k = 0; k < shard_count; ++k) {
      double sum = 0;
      for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) sum += get(got.losses, n);
      EXPECT_EQ(get(got.leaves, k), static_cast<float>(sum / double(images * rule.divide_by)));
    }
    const Result misaligned = run(shards, logits, labels, rule, true);
    EXPECT_TRUE(same_bits(misaligned.losses, got.losses));
    EXPECT_TRUE(same_bits(misaligned.rank, got.rank));
    EXPECT_TRUE(same_bits(misaligned.grad, got.grad));
  }
}
INSTANTIATE_TEST_SUITE_P(Cases,
                         CudaBinaryCrossEntropyCases,
                         ::testing::Values(Case{1, 1, 1, {}},
                                           Case{7, 10, 3, {.mix = 0.25, .divide_by = 3}},
                                           Case{5, 16, 8, {.smoothing = 0.1F}},  // empty shards
                                           Case{2, 257, 1, {0.1F, 0.75, 0.2F}},
                                           Case{2, 1000, 2, {.threshold = 0.2F}},
                                           Case{1, 4104, 1, {}},
                                           Case{5, 3, 1, {.smoothing = 1}}));

TEST_F(CudaBinaryCrossEntropy, TargetsAreCutAsOnTheCpu) {
  const Tensor logits = Tensor::zeros({2, 4}, Dtype::kF32);
  for (const float threshold : {0.2F, 0.25F, 0.75F}) {
    const Result got =
        run(Shards::single(2), logits, {0, 2}, {.mix = 0.75, .threshold = threshold});
    EXPECT_EQ(get(got.grad, 0) < 0, threshold < 0.75F);
    EXPECT_EQ(get(got.grad, 2) < 0, threshold < 0.25F);
  }
}

TEST_F(CudaBinaryCrossEntropy, NanAndBadLabelsStayInTheirImage) {
  Tensor logits = random_tensor({3, 3}, 1);
  testing::set(logits, 1, std::numeric_limits<double>::quiet_NaN());
  const Result got = run(Shards::cut(3, 3, 1), logits, {1, 3, 2});
  for (const int64_t bad : {0, 1}) {
    EXPECT_TRUE(std::isnan(get(got.losses, bad)));
    EXPECT_EQ(ints_of(got.rank)[size_t(bad)], 3);
    EXPECT_TRUE(std::isnan(get(got.grad, 3 * bad + 1)));
  }
  EXPECT_TRUE(std::isfinite(get(got.losses, 2)));
  EXPECT_TRUE(std::isfinite(get(got.grad, 7)));
}

TEST_F(CudaBinaryCrossEntropy, HugeLogitsDoNotOverflow) {
  const Tensor logits = tensor_of(std::vector{3e4, -3e4}, {1, 2}, Dtype::kF32);
  const Result right = run(Shards::single(1), logits, {0});
  EXPECT_EQ(get(right.losses, 0), 0);
  EXPECT_EQ(get(right.grad, 0), 0);
  const Result wrong = run(Shards::single(1), logits, {1});
  EXPECT_EQ(get(wrong.losses, 0), 3e4);
  EXPECT_EQ(get(wrong.grad, 1), -0.5);
}

}  // namespace
}  // namespace lockstep::kernels::binary_cross_entropy_test
