#include "kernels/optim/adam.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/adam.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/golden.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::adam_test {
namespace {

using testing::close;
using testing::doubles;
using testing::golden_cases;
using testing::GoldenCase;
using testing::random_tensor;
using testing::same_bits;

// Slots of these lengths in the midst of a training, the same values at every call.
std::vector<AdamSlot> make_slots(const std::vector<int64_t>& lengths) {
  std::vector<AdamSlot> slots;
  uint64_t seed = 1;
  for (const int64_t length : lengths) {
    slots.push_back({.param = random_tensor({length}, seed),
                     .grad = random_tensor({length}, seed + 1),
                     .exp_avg = random_tensor({length}, seed + 2),
                     .exp_avg_sq = random_tensor({length}, seed + 3, 0.01F, 1)});
    seed += 4;
  }
  return slots;
}

struct Expected {
  std::vector<double> param, exp_avg, exp_avg_sq;
};

Expected expected(const AdamSlot& slot, const AdamParams& params, int64_t step) {
  const reference::AdamRule rule = {.lr = params.lr,
                                    .beta1 = params.beta1,
                                    .beta2 = params.beta2,
                                    .eps = params.eps,
                                    .weight_decay = params.weight_decay,
                                    .decoupled = params.decoupled};
  const std::vector<double> param = doubles(slot.param);
  const std::vector<double> grad = doubles(slot.grad);
  const std::vector<double> exp_avg = doubles(slot.exp_avg);
  const std::vector<double> exp_avg_sq = doubles(slot.exp_avg_sq);
  Expected result;
  for (size_t i = 0; i < param.size(); ++i) {
    const auto after = reference::adam_step(
        {.param = param[i], .exp_avg = exp_avg[i], .exp_avg_sq = exp_avg_sq[i]},
        grad[i],
        rule,
        static_cast<double>(step));
    result.param.push_back(after.param);
    result.exp_avg.push_back(after.exp_avg);
    result.exp_avg_sq.push_back(after.exp_avg_sq);
  }
  return result;
}

class AdamParamsCases : public ::testing::TestWithParam<AdamParams> {};

TEST_P(AdamParamsCases, MatchesReferenceOnAnyNumberOfThreads) {
  const AdamParams& params = GetParam();
  const std::vector<int64_t> lengths = {1, 400, 0, 25088, 17, 3};
  constexpr testing::Tolerance kTolerance = {.rel = 0x1p-21, .abs = 0x1p-21};
  for (const int64_t step : {1, 7, 5000}) {
    std::vector<AdamSlot> on_one_thread;
    for (const int threads : {1, 2, 3}) {
      Stream stream(Device::kCpu, threads);
      std::vector<AdamSlot> slots = make_slots(lengths);
      std::vector<Expected> want;
      for (const AdamSlot& slot : slots) want.push_back(expected(slot, params, step));
      adam_step(stream, slots, params, step);
      if (threads == 1) on_one_thread = slots;
      for (size_t i = 0; i < slots.size(); ++i) {
        EXPECT_TRUE(close(slots[i].param.span<const float>(), want[i].param, kTolerance));
        EXPECT_TRUE(close(slots[i].exp_avg.span<const float>(), want[i].exp_avg, kTolerance));
        EXPECT_TRUE(close(slots[i].exp_avg_sq.span<const float>(), want[i].exp_avg_sq, kTolerance));
        EXPECT_TRUE(same_bits(slots[i].param, on_one_thread[i].param)) << threads << " threads";
        EXPECT_TRUE(same_bits(slots[i].exp_avg, on_one_thread[i].exp_avg));
        EXPECT_TRUE(same_bits(slots[i].exp_avg_sq, on_one_thread[i].exp_avg_sq));
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Params,
    AdamParamsCases,
    ::testing::Values(AdamParams{},
                      AdamParams{.lr = 0.1, .weight_decay = 0.1},
                      AdamParams{.lr = 0.1, .weight_decay = 0.1, .decoupled = true},
                      AdamParams{.lr = 0.1, .beta1 = 0.5, .beta2 = 0.9, .eps = 0.1},
                      AdamParams{.lr = 0.1, .beta1 = 0, .beta2 = 0}));

TEST(Adam, FollowsPyTorchStepByStep) {
  Stream stream(Device::kCpu, 2);
  for (const GoldenCase& golden : golden_cases("adam")) {
    SCOPED_TRACE(golden.name());
    Tensor param = golden.tensor("param_before");
    const Tensor grads = golden.tensor("grads");
    const Tensor params = golden.tensor("params");
    const Tensor exp_avgs = golden.tensor("exp_avgs");
    const Tensor exp_avg_sqs = golden.tensor("exp_avg_sqs");
    std::array<AdamSlot, 1> slots = {
        AdamSlot{.param = param,
                 .grad = {},
                 .exp_avg = Tensor::zeros(param.shape(), Dtype::kF32),
                 .exp_avg_sq = Tensor::zeros(param.shape(), Dtype::kF32)}};
    for (int64_t i = 0; i < grads.shape()[0]; ++i) {
      slots[0].grad = grads.slice(i, 1).view(param.shape());
      adam_step(stream,
                slots,
                {.lr = golden.number("lr/" + std::to_string(i)),
                 .beta1 = golden.number("betas/0"),
                 .beta2 = golden.number("betas/1"),
                 .eps = golden.number("eps"),
                 .weight_decay = golden.number("weight_decay"),
                 .decoupled = golden.number("decoupled") != 0},
                i + 1);
      EXPECT_TRUE(close(param.span<float>(), params.slice(i, 1).span<float>(), {1e-6, 1e-7}));
      EXPECT_TRUE(
          close(slots[0].exp_avg.span<float>(), exp_avgs.slice(i, 1).span<float>(), {1e-6, 1e-7}));
      EXPECT_TRUE(close(
          slots[0].exp_avg_sq.span<float>(), exp_avg_sqs.slice(i, 1).span<float>(), {1e-6, 0}));
    }
  }
}

TEST(Adam, InstructionSetsAgree) {
  Stream stream;
  const AdamParams params = {.lr = 0.1, .weight_decay = 0.1};
  std::vector<AdamSlot> want = make_slots({301});
  adam_step(stream, want, params, 3);
  for (AdamStep* body : LS_ISA_BODIES(adam_step)) {
    std::vector<AdamSlot> got = make_slots({301});
    body(stream, got, params, 3);
    EXPECT_TRUE(same_bits(got[0].param, want[0].param));
    EXPECT_TRUE(same_bits(got[0].exp_avg, want[0].exp_avg));
    EXPECT_TRUE(same_bits(got[0].exp_avg_sq, want[0].exp_avg_sq));
  }
}

TEST(Adam, RejectsStepZero) {
  Stream stream;
  std::vector<AdamSlot> slots = make_slots({3});
  try {
    adam_step(stream, slots, {}, 0);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[adam_step] required: step >= 1");
  }
}

TEST(Adam, RejectsSlotsThatDoNotMatch) {
  Stream stream;
  const auto with = [&](auto&& change) {
    std::vector<AdamSlot> slots = make_slots({3, 4});
    change(slots[1]);
    adam_step(stream, slots, {}, 1);
  };
  const Tensor longer = Tensor::zeros({5}, Dtype::kF32);
  EXPECT_THROW(with([&](AdamSlot& slot) { slot.grad = longer; }), ShapeError);
  EXPECT_THROW(with([&](AdamSlot& slot) { slot.exp_avg = longer; }), ShapeError);
  EXPECT_THROW(with([&](AdamSlot& slot) { slot.exp_avg_sq = longer; }), ShapeError);
  EXPECT_THROW(with([](AdamSlot& slot) { slot.exp_avg_sq = {}; }), ShapeError);
  EXPECT_THROW(with([](AdamSlot& slot) { slot.grad = Tensor::zeros({4}, Dtype::kI32); }),
               DtypeError);
}

TEST(Adam, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor tensor = Tensor::empty({10}, Dtype::kF32, Device::kDry);
  std::vector<AdamSlot> slots = {{tensor, tensor, tensor, tensor},
                                 {tensor, tensor, tensor, tensor}};
  adam_step(stream, slots, {}, 1);
  adam_step(stream, slots, {.weight_decay = 0.1}, 1);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].op, "adam_step");
  EXPECT_EQ(stream.ledger()[0].bytes, 7 * 80);
  EXPECT_EQ(stream.ledger()[0].flops, 13 * 20);
  EXPECT_EQ(stream.ledger()[1].flops, 15 * 20);
}

}  // namespace
}  // namespace lockstep::kernels::adam_test
