#include "kernels/optim/sgd.h"

#include <array>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/sgd.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::sgd_test {
namespace {

using testing::close;
using testing::doubles;
using testing::random_tensor;
using testing::same_bits;

// Slots of these lengths, the same values at every call.
std::vector<SgdSlot> make_slots(const std::vector<int64_t>& lengths, bool with_momentum) {
  std::vector<SgdSlot> slots;
  uint64_t seed = 1;
  for (const int64_t length : lengths) {
    slots.push_back({.param = random_tensor({length}, seed),
                     .grad = random_tensor({length}, seed + 1),
                     .momentum = with_momentum ? random_tensor({length}, seed + 2) : Tensor()});
    seed += 3;
    if (length % 2 == 0) continue;
    slots.back().factor = Tensor::empty({1}, Dtype::kF32);  // of LARC
    *slots.back().factor.data<float>() = 0.3F;
  }
  return slots;
}

struct Expected {
  std::vector<double> param, buf;
};

Expected expected(const SgdSlot& slot, const SgdParams& params) {
  const std::vector<double> param = doubles(slot.param);
  const std::vector<double> grad = doubles(slot.grad);
  const bool has_momentum = slot.momentum.defined();
  const std::vector<double> buf = has_momentum ? doubles(slot.momentum) : param;
  const double factor = slot.factor.defined() ? *slot.factor.data<float>() : 1;
  Expected result;
  for (size_t i = 0; i < param.size(); ++i) {
    const auto after = reference::sgd_step({.param = param[i], .buf = buf[i]},
                                           grad[i],
                                           params.lr,
                                           params.momentum,
                                           params.weight_decay,
                                           params.nesterov,
                                           factor);
    result.param.push_back(after.param);
    result.buf.push_back(after.buf);
  }
  return result;
}

class SgdParamsCases : public ::testing::TestWithParam<SgdParams> {};

TEST_P(SgdParamsCases, MatchesReferenceOnAnyNumberOfThreads) {
  const SgdParams& params = GetParam();
  const bool has_momentum = params.momentum != 0;
  const std::vector<int64_t> lengths = {1, 400, 0, 25088, 17, 3};
  std::vector<Expected> want;
  for (const SgdSlot& slot : make_slots(lengths, has_momentum)) {
    want.push_back(expected(slot, params));
  }
  constexpr testing::Tolerance kTolerance = {.rel = 0x1p-22, .abs = 0x1p-22};
  std::vector<SgdSlot> on_one_thread;
  for (const int threads : {1, 2, 3}) {
    Stream stream(Device::kCpu, threads);
    std::vector<SgdSlot> slots = make_slots(lengths, has_momentum);
    sgd_step(stream, slots, params);
    if (threads == 1) on_one_thread = slots;
    for (size_t i = 0; i < slots.size(); ++i) {
      EXPECT_TRUE(close(slots[i].param.span<const float>(), want[i].param, kTolerance));
      EXPECT_TRUE(same_bits(slots[i].param, on_one_thread[i].param)) << threads << " threads";
      if (!has_momentum) continue;
      EXPECT_TRUE(close(slots[i].momentum.span<const float>(), want[i].buf, kTolerance));
      EXPECT_TRUE(same_bits(slots[i].momentum, on_one_thread[i].momentum));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Params,
    SgdParamsCases,
    ::testing::Values(SgdParams{.lr = 0.1F},
                      SgdParams{.lr = 0.1F, .weight_decay = 0.01F},
                      SgdParams{.lr = 0.1F, .momentum = 0.9F},
                      SgdParams{.lr = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F},
                      SgdParams{.lr = 0.1F, .momentum = 0.9F, .nesterov = true},
                      SgdParams{
                          .lr = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F, .nesterov = true}));

TEST(Sgd, MatchesValuesPrintedByPyTorch) {
  struct Run {
    bool nesterov;
    std::array<double, 3> params;
  };
  constexpr std::array<double, 3> kBuffers = {1.01, 2.9170809, 5.6288204};
  for (const Run& run : {Run{true, {.8080999851, .3447546065, -.4621839523}},
                         Run{false, {.8989999890, .6072009802, .0439746529}}}) {
    Stream stream;
    std::array<SgdSlot, 1> slots = {SgdSlot{.param = Tensor::empty({1}, Dtype::kF32),
                                            .grad = Tensor::empty({1}, Dtype::kF32),
                                            .momentum = Tensor::zeros({1}, Dtype::kF32)}};
    *slots[0].param.data<float>() = 1;
    for (size_t step = 0; step < 3; ++step) {
      *slots[0].grad.data<float>() = static_cast<float>(step + 1);
      sgd_step(stream,
               slots,
               {.lr = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F, .nesterov = run.nesterov});
      EXPECT_NEAR(*slots[0].param.data<float>(), run.params[step], 1e-7) << "step " << step;
      if (run.nesterov) {
        EXPECT_NEAR(*slots[0].momentum.data<float>(), kBuffers[step], 1e-6);
      }
    }
  }
}

TEST(Sgd, WithoutDecayAnInfiniteParameterStaysInfinite) {
  Stream stream;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<SgdSlot> slots = make_slots({1}, true);
  *slots[0].param.data<float>() = kInf;
  sgd_step(stream, slots, {.lr = 0.1F, .momentum = 0.9F});
  EXPECT_EQ(*slots[0].param.data<float>(), kInf);
}

TEST(Sgd, InstructionSetsAgree) {
  Stream stream;
  for (const float momentum : {0.0F, 0.9F}) {
    const SgdParams params = {
        .lr = 0.1F, .momentum = momentum, .weight_decay = 0.01F, .nesterov = momentum != 0};
    std::vector<SgdSlot> want = make_slots({301}, true);
    sgd_step(stream, want, params);
    for (SgdStep* body : LS_ISA_BODIES(sgd_step)) {
      std::vector<SgdSlot> got = make_slots({301}, true);
      body(stream, got, params);
      EXPECT_TRUE(same_bits(got[0].param, want[0].param));
      EXPECT_TRUE(same_bits(got[0].momentum, want[0].momentum));
    }
  }
}

TEST(Sgd, RejectsNesterovWithoutMomentum) {
  Stream stream;
  std::vector<SgdSlot> slots = make_slots({3}, true);
  try {
    sgd_step(stream, slots, {.lr = 0.1F, .nesterov = true});
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[sgd_step] required: momentum != 0 for nesterov");
  }
}

TEST(Sgd, RejectsSlotsThatDoNotMatch) {
  Stream stream;
  std::vector<SgdSlot> slots = make_slots({3, 4}, false);
  EXPECT_THROW(sgd_step(stream, slots, {.lr = 0.1F, .momentum = 0.9F}), ShapeError) << "no buffers";
  slots[1].grad = Tensor::zeros({5}, Dtype::kF32);
  EXPECT_THROW(sgd_step(stream, slots, {.lr = 0.1F}), ShapeError);
  slots[1].grad = Tensor::zeros({4}, Dtype::kI32);
  EXPECT_THROW(sgd_step(stream, slots, {.lr = 0.1F}), DtypeError);
  slots[1].grad = Tensor::zeros({4}, Dtype::kF32);
  slots[1].factor = Tensor::zeros({2}, Dtype::kF32);
  EXPECT_THROW(sgd_step(stream, slots, {.lr = 0.1F}), ShapeError) << "two factors";
  slots[1] = {};
  EXPECT_THROW(sgd_step(stream, slots, {.lr = 0.1F}), ShapeError) << "undefined";
}

TEST(Sgd, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor tensor = Tensor::empty({10}, Dtype::kF32, Device::kDry);
  std::vector<SgdSlot> slots = {{tensor, tensor, tensor}, {tensor, tensor, tensor}};
  sgd_step(stream, slots, {.lr = 0.1F, .momentum = 0.9F});
  sgd_step(stream, slots, {.lr = 0.1F});
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].bytes, 5 * 80);
  EXPECT_EQ(stream.ledger()[0].flops, 4 * 20);
  EXPECT_EQ(stream.ledger()[1].bytes, 3 * 80);
}

}  // namespace
}  // namespace lockstep::kernels::sgd_test
