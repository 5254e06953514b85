// 16-bit gradients, copies of masters and steps that the device decides on, for every optimizer.
#include <vector>

#include <gtest/gtest.h>

#include "kernels/optim/adam.h"
#include "kernels/optim/sgd.h"
#include "kernels/optim/weight_averages.h"
#include "tests/support/close.h"
#include "tests/support/float_types.h"
#include "tests/support/loss_scale_cases.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::mixed_precision_step_test {
namespace {

using testing::kFloatTypes;
using testing::loss_scale_state;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;

constexpr Dtype kCopyTypes[] = {Dtype::kF16, Dtype::kBF16};
constexpr int64_t kLength = 20011;  // several blocks, on several threads

// Gradients times 1 / scale as the ops take it.
Tensor unscaled(const Tensor& grad, float scale) {
  Tensor result = rounded_to(Dtype::kF32, grad);
  const float factor = 1 / scale;
  for (float& value : result.span<float>()) value *= factor;
  return result;
}

SgdSlot sgd_slot(const Tensor& grad, const Tensor& copy) {
  return {.param = random_tensor({kLength}, 1),
          .grad = grad,
          .momentum = random_tensor({kLength}, 2),
          .copy = copy};
}
AdamSlot adam_slot(const Tensor& grad, const Tensor& copy) {
  return {.param = random_tensor({kLength}, 1),
          .grad = grad,
          .exp_avg = random_tensor({kLength}, 2),
          .exp_avg_sq = random_tensor({kLength}, 3, 0.01F, 1),
          .copy = copy};
}
LookaheadSlot lookahead_slot(const Tensor& copy) {
  return {.param = random_tensor({kLength}, 1), .slow = random_tensor({kLength}, 2), .copy = copy};
}

const SgdParams kSgd = {.lr = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F, .nesterov = true};
const AdamParams kAdam = {.lr = 0.1, .weight_decay = 0.01, .decoupled = true};

class MixedPrecision : public ::testing::TestWithParam<int> {
 protected:
  void sgd(SgdSlot& slot, SgdParams params) { sgd_step(stream_, {&slot, 1}, params); }
  void adam(AdamSlot& slot, const AdamParams& params, int64_t step) {
    adam_step(stream_, {&slot, 1}, params, step);
  }

  Stream stream_{Device::kCpu, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Threads, MixedPrecision, ::testing::Values(1, 3));

TEST_P(MixedPrecision, AStepIsTheF32StepOnUnscaledGradientsAndRoundsItsCopy) {
  constexpr float kScale = 24;  // no power of two
  for (const Dtype grad_dtype : kFloatTypes) {
    const Tensor grad = rounded_to(grad_dtype, random_tensor({kLength}, 4, -kScale, kScale));
    for (const Dtype copy_dtype : kCopyTypes) {
      const StepControl control = {.state = loss_scale_state(stream_, kScale, 6, false)};
      SgdSlot sgd_want = sgd_slot(unscaled(grad, kScale), {});
      SgdSlot sgd_got = sgd_slot(grad, poisoned_tensor({kLength}, copy_dtype));
      sgd(sgd_want, kSgd);
      SgdParams controlled = kSgd;
      controlled.control = control;
      sgd(sgd_got, controlled);
      EXPECT_TRUE(same_bits(sgd_got.param, sgd_want.param));
      EXPECT_TRUE(same_bits(sgd_got.momentum, sgd_want.momentum));
      EXPECT_TRUE(same_bits(sgd_got.copy, rounded_to(copy_dtype, sgd_want.param)));

      AdamSlot adam_want = adam_slot(unscaled(grad, kScale), {});
      AdamSlot adam_got = adam_slot(grad, poisoned_tensor({kLength}, copy_dtype));
      adam(adam_want, kAdam, 7);
      AdamParams adam_controlled = kAdam;
      adam_controlled.control = control;
      adam(adam_got, adam_controlled, 0);
      EXPECT_TRUE(same_bits(adam_got.param, adam_want.param));
      EXPECT_TRUE(same_bits(adam_got.exp_avg, adam_want.exp_avg));
      EXPECT_TRUE(same_bits(adam_got.exp_avg_sq, adam_want.exp_avg_sq));
      EXPECT_TRUE(same_bits(adam_got.copy, rounded_to(copy_dtype, adam_want.param)));
    }
  }
}

TEST_P(MixedPrecision, SixteenBitGradientsNeedNoControl) {
  for (const Dtype dtype : kCopyTypes) {
    const Tensor grad = rounded_to(dtype, random_tensor({kLength}, 4));
    SgdSlot want = sgd_slot(unscaled(grad, 1), {});
    SgdSlot got = sgd_slot(grad, {});
    sgd(want, {.lr = 0.1F});
    sgd(got, {.lr = 0.1F});
    EXPECT_TRUE(same_bits(got.param, want.param));
    EXPECT_TRUE(same_bits(got.momentum, random_tensor({kLength}, 2))) << "without momentum";
  }
}

TEST_P(MixedPrecision, ASkippedStepChangesNothing) {
  const Tensor grad = random_tensor({kLength}, 4);
  const Tensor copy = rounded_to(Dtype::kF16, random_tensor({kLength}, 5));
  const Tensor state = loss_scale_state(stream_, 2, 9, true);
  SgdSlot sgd_got = sgd_slot(grad, rounded_to(Dtype::kF16, copy));
  SgdParams sgd_params = kSgd;
  sgd_params.control.state = state;
  sgd(sgd_got, sgd_params);
  EXPECT_TRUE(same_bits(sgd_got.param, sgd_slot(grad, {}).param));
  EXPECT_TRUE(same_bits(sgd_got.momentum, sgd_slot(grad, {}).momentum));
  EXPECT_TRUE(same_bits(sgd_got.copy, copy));

  AdamSlot adam_got = adam_slot(grad, rounded_to(Dtype::kF16, copy));
  AdamParams adam_params = kAdam;
  adam_params.control.state = state;
  adam(adam_got, adam_params, 0);
  const AdamSlot adam_before = adam_slot(grad, {});
  EXPECT_TRUE(same_bits(adam_got.param, adam_before.param));
  EXPECT_TRUE(same_bits(adam_got.exp_avg, adam_before.exp_avg));
  EXPECT_TRUE(same_bits(adam_got.exp_avg_sq, adam_before.exp_avg_sq));
  EXPECT_TRUE(same_bits(adam_got.copy, copy));

  LookaheadSlot lookahead_got = lookahead_slot(rounded_to(Dtype::kF16, copy));
  lookahead_sync(stream_, {&lookahead_got, 1}, {.state = state});
  EXPECT_TRUE(same_bits(lookahead_got.param, lookahead_slot({}).param));
  EXPECT_TRUE(same_bits(lookahead_got.slow, lookahead_slot({}).slow));
  EXPECT_TRUE(same_bits(lookahead_got.copy, copy));
}

TEST_P(MixedPrecision, TheRateAndAdamsStepFollowTheAppliedSteps) {
  const std::vector<double> lrs = {0.1, 1e-3, 0.7};
  const Tensor grad = random_tensor({kLength}, 4);
  for (const int64_t applied : {0, 1, 2, 3, 1000}) {
    const StepControl control = {.state = loss_scale_state(stream_, 1, applied, false),
                                 .lr_table = lr_table_of(lrs)};
    const double lr = lrs[static_cast<size_t>(std::min<int64_t>(applied, 2))];
    SgdSlot sgd_want = sgd_slot(grad, {});
    SgdSlot sgd_got = sgd_slot(grad, {});
    sgd(sgd_want, {.lr = static_cast<float>(lr), .momentum = 0.9F});
    sgd(sgd_got, {.momentum = 0.9F, .control = control});
    EXPECT_TRUE(same_bits(sgd_got.param, sgd_want.param)) << applied;

    AdamSlot adam_want = adam_slot(grad, {});
    AdamSlot adam_got = adam_slot(grad, {});
    adam(adam_want, {.lr = lr}, applied + 1);
    adam(adam_got, {.control = control}, 0);
    EXPECT_TRUE(same_bits(adam_got.param, adam_want.param)) << applied;
  }
}

// Which of nothing, `begin` and `meet` a call did.
std::string lookahead_after(Stream& stream, int64_t applied, const LookaheadParams& rule) {
  LookaheadSlot slot = lookahead_slot({});
  LookaheadParams params = rule;
  params.state = loss_scale_state(stream, 8, applied, false);
  lookahead_sync(stream, {&slot, 1}, params);
  const LookaheadSlot before = lookahead_slot({});
  LookaheadSlot met = lookahead_slot({});
  lookahead_sync(stream, {&met, 1}, {.alpha = rule.alpha});
  if (same_bits(slot.param, met.param) && same_bits(slot.slow, met.slow)) return "meet";
  if (!same_bits(slot.param, before.param)) return "wrong weights";
  if (same_bits(slot.slow, before.param)) return "begin";
  return same_bits(slot.slow, before.slow) ? "nothing" : "wrong slow weights";
}

TEST_P(MixedPrecision, LookaheadFollowsTheAppliedSteps) {
  const auto actions = [&](const LookaheadParams& rule) {
    std::vector<std::string> result;
    for (int64_t step = 1; step <= 7; ++step)
      result.push_back(lookahead_after(stream_, step - 1, rule));
    return result;
  };
  using Actions = std::vector<std::string>;
  EXPECT_EQ(actions({.k = 3}),
            (Actions{"nothing", "nothing", "meet", "nothing", "nothing", "meet", "nothing"}));
  EXPECT_EQ(actions({.k = 3, .begin = 1}),
            (Actions{"begin", "nothing", "nothing", "meet", "nothing", "nothing", "meet"}));
  EXPECT_EQ(actions({.k = 1, .begin = 2}),
            (Actions{"nothing", "begin", "meet", "meet", "meet", "meet", "meet"}));
}

TEST_P(MixedPrecision, LookaheadRoundsItsCopy) {
  for (const Dtype dtype : kCopyTypes) {
    LookaheadSlot slot = lookahead_slot(poisoned_tensor({kLength}, dtype));
    lookahead_sync(stream_, {&slot, 1}, {});
    EXPECT_TRUE(same_bits(slot.copy, rounded_to(dtype, slot.param)));
  }
}

TEST(MixedPrecisionArguments, AreChecked) {
  Stream stream;
  const Tensor three = Tensor::zeros({3}, Dtype::kF32);
  const auto step = [&](const Tensor& copy, const StepControl& control) {
    SgdSlot slot = {.param = three, .grad = three, .momentum = {}, .copy = copy};
    sgd_step(stream, {&slot, 1}, {.lr = 0.1F, .control = control});
  };
  const Tensor state = loss_scale_state(stream);
  EXPECT_NO_THROW(step(Tensor::zeros({3}, Dtype::kF16), {.state = state}));
  EXPECT_THROW(step(Tensor::zeros({4}, Dtype::kF16), {}), ShapeError);
  EXPECT_THROW(step(Tensor::zeros({3}, Dtype::kF32), {}), DtypeError);
  EXPECT_THROW(step({}, {.state = three}), DtypeError);
  EXPECT_THROW(step({}, {.state = state, .lr_table = three}), DtypeError);
  EXPECT_THROW(step({}, {.state = state, .lr_table = lr_table_of({})}), ShapeError);
  const std::vector<double> lrs = {0.1};
  try {
    step({}, {.lr_table = lr_table_of(lrs)});
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[sgd_step] required: control.state for control.lr_table");
  }
  std::vector<LookaheadSlot> none;
  EXPECT_THROW(lookahead_sync(stream, none, {.k = 0}), ShapeError);
  EXPECT_THROW(lookahead_sync(stream, none, {.state = three}), DtypeError);
}

TEST(MixedPrecisionCost, OfAParameterIs20BytesForSgdAnd28ForAdam) {
  Stream stream(Device::kDry);
  const Tensor f32 = Tensor::empty({10}, Dtype::kF32, Device::kDry);
  const Tensor f16 = Tensor::empty({10}, Dtype::kF16, Device::kDry);
  SgdSlot sgd = {.param = f32, .grad = f16, .momentum = f32, .copy = f16};
  sgd_step(stream, {&sgd, 1}, kSgd);
  AdamSlot adam = {.param = f32, .grad = f16, .exp_avg = f32, .exp_avg_sq = f32, .copy = f16};
  adam_step(stream, {&adam, 1}, kAdam, 1);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].bytes, 200);
  EXPECT_EQ(stream.ledger()[1].bytes, 280);
}

}  // namespace
}  // namespace lockstep::kernels::mixed_precision_step_test
