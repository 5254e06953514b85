#include "tests/reference/ema_update.h"

#include <vector>

#include <gtest/gtest.h>

#include "kernels/optim/weight_averages.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/loss_scale_cases.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::ema_update_test {
namespace {

using testing::close;
using testing::doubles;
using testing::loss_scale_state;
using testing::random_tensor;
using testing::same_bits;

// Slots of these lengths, the same values at every call.
std::vector<EmaSlot> make_slots(const std::vector<int64_t>& lengths) {
  std::vector<EmaSlot> slots;
  uint64_t seed = 1;
  for (const int64_t length : lengths) {
    slots.push_back(
        {.param = random_tensor({length}, seed), .ema = random_tensor({length}, seed + 1)});
    seed += 2;
  }
  return slots;
}

TEST(EmaUpdate, MatchesReferenceOnAnyNumberOfThreads) {
  const std::vector<int64_t> lengths = {1, 400, 0, 25088, 17, 3};
  for (const int64_t step : {1, 2, 80, 90, 1'000'000}) {
    std::vector<EmaSlot> on_one_thread;
    for (const int threads : {1, 2, 3}) {
      Stream stream(Device::kCpu, threads);
      std::vector<EmaSlot> slots = make_slots(lengths);
      ema_update(stream, slots, {.decay = 0.9, .step = step});
      if (threads == 1) on_one_thread = slots;
      const std::vector<EmaSlot> before = make_slots(lengths);
      for (size_t i = 0; i < slots.size(); ++i) {
        const std::vector<double> value = doubles(before[i].param);
        std::vector<double> want = doubles(before[i].ema);
        for (size_t j = 0; j < want.size(); ++j) {
          want[j] = reference::ema_update(value[j], want[j], 0.9, static_cast<double>(step));
        }
        EXPECT_TRUE(close(slots[i].ema.span<const float>(), want, {.abs = 0x1p-22})) << step;
        EXPECT_TRUE(same_bits(slots[i].ema, on_one_thread[i].ema)) << threads << " threads";
        EXPECT_TRUE(same_bits(slots[i].param, before[i].param));
      }
    }
  }
}

// mu of the first steps is 2/11, 3/12, 4/13, whatever the decay.
TEST(EmaUpdate, BeginsWithAShortMemory) {
  Stream stream;
  std::vector<EmaSlot> slots = make_slots({1});
  *slots[0].ema.data<float>() = 0;
  *slots[0].param.data<float>() = 1;
  const float want[] = {9.0F / 11, 1 - 6.0F / 132, 1 - 24.0F / 1716};
  for (int64_t step = 1; step <= 3; ++step) {
    ema_update(stream, slots, {.decay = 0.9999, .step = step});
    EXPECT_FLOAT_EQ(*slots[0].ema.data<float>(), want[step - 1]);
  }
}

TEST(EmaUpdate, FollowsTheAppliedStepsAndSkips) {
  Stream stream;
  for (const int64_t applied : {0, 1, 500}) {
    std::vector<EmaSlot> want = make_slots({5});
    ema_update(stream, want, {.decay = 0.9, .step = applied + 1});
    std::vector<EmaSlot> got = make_slots({5});
    ema_update(
        stream, got, {.decay = 0.9, .state = loss_scale_state(stream, {.applied = applied})});
    EXPECT_TRUE(same_bits(got[0].ema, want[0].ema));
  }
  std::vector<EmaSlot> skipped = make_slots({5});
  ema_update(stream, skipped, {.decay = 0.9, .state = loss_scale_state(stream, {.found_inf = 1})});
  EXPECT_TRUE(same_bits(skipped[0].ema, make_slots({5})[0].ema));
}

TEST(EmaUpdate, InstructionSetsAgree) {
  Stream stream;
  std::vector<EmaSlot> want = make_slots({301});
  ema_update(stream, want, {.decay = 0.3});
  for (EmaUpdate* body : LS_ISA_BODIES(ema_update)) {
    std::vector<EmaSlot> got = make_slots({301});
    body(stream, got, {.decay = 0.3});
    EXPECT_TRUE(same_bits(got[0].ema, want[0].ema));
  }
}

TEST(EmaUpdate, RejectsArgumentsThatDoNotFit) {
  Stream stream;
  std::vector<EmaSlot> slots = make_slots({3, 4});
  EXPECT_THROW(ema_update(stream, slots, {.decay = 1}), ShapeError);
  EXPECT_THROW(ema_update(stream, slots, {.decay = -0.1}), ShapeError);
  EXPECT_THROW(ema_update(stream, slots, {.step = 0}), ShapeError);
  slots[1].ema = Tensor::zeros({5}, Dtype::kF32);
  EXPECT_THROW(ema_update(stream, slots, {}), ShapeError);
  slots[1].ema = Tensor::zeros({4}, Dtype::kF16);
  EXPECT_THROW(ema_update(stream, slots, {}), DtypeError);
}

TEST(EmaUpdate, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor tensor = Tensor::empty({10}, Dtype::kF32, Device::kDry);
  std::vector<EmaSlot> slots = {{tensor, tensor}};
  ema_update(stream, slots, {});
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, 120);
}

}  // namespace
}  // namespace lockstep::kernels::ema_update_test
