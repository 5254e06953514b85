#include "tests/reference/lookahead.h"

#include <vector>

#include <gtest/gtest.h>

#include "kernels/optim/weight_averages.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::lookahead_test {
namespace {

using testing::close;
using testing::doubles;
using testing::random_tensor;
using testing::same_bits;

// Slots of these lengths, the same values at every call.
std::vector<LookaheadSlot> make_slots(const std::vector<int64_t>& lengths) {
  std::vector<LookaheadSlot> slots;
  uint64_t seed = 1;
  for (const int64_t length : lengths) {
    slots.push_back(
        {.param = random_tensor({length}, seed), .slow = random_tensor({length}, seed + 1)});
    seed += 2;
  }
  return slots;
}

TEST(Lookahead, MatchesReferenceOnAnyNumberOfThreads) {
  const std::vector<int64_t> lengths = {1, 400, 0, 25088, 17, 3};
  for (const float alpha : {0.0F, 0.5F, 0.8F, 1.0F}) {
    std::vector<LookaheadSlot> on_one_thread;
    for (const int threads : {1, 2, 3}) {
      Stream stream(Device::kCpu, threads);
      std::vector<LookaheadSlot> slots = make_slots(lengths);
      lookahead_sync(stream, slots, {.alpha = alpha});
      if (threads == 1) on_one_thread = slots;
      const std::vector<LookaheadSlot> before = make_slots(lengths);
      for (size_t i = 0; i < slots.size(); ++i) {
        std::vector<double> want = doubles(before[i].param);
        const std::vector<double> slow = doubles(before[i].slow);
        for (size_t j = 0; j < want.size(); ++j) {
          want[j] = reference::lookahead_sync(want[j], slow[j], alpha);
        }
        EXPECT_TRUE(close(slots[i].slow.span<const float>(), want, {.abs = 0x1p-22})) << alpha;
        EXPECT_TRUE(same_bits(slots[i].param, slots[i].slow));
        EXPECT_TRUE(same_bits(slots[i].slow, on_one_thread[i].slow)) << threads << " threads";
      }
    }
  }
}

// airbench94's: keep = 0.95^5 (t / T)^3, slow.lerp_(fast, 1 - keep).
TEST(Lookahead, AlphaFallsOverTheRun) {
  constexpr double kLast = 0.2262190625;  // 1 - 0.95^5
  Stream stream;
  for (const int64_t t : {1, 5, 13, 20}) {
    std::vector<LookaheadSlot> slots = make_slots({40});
    lookahead_sync(stream, slots, {.alpha = kLast, .step = t, .total = 20});
    const std::vector<LookaheadSlot> before = make_slots({40});
    std::vector<double> want = doubles(before[0].param);
    const std::vector<double> slow = doubles(before[0].slow);
    const double keep = std::pow(0.95, 5) * std::pow(static_cast<double>(t) / 20, 3);
    EXPECT_NEAR(reference::falling_alpha(kLast, static_cast<double>(t), 20), 1 - keep, 1e-15);
    for (size_t j = 0; j < want.size(); ++j) {
      want[j] = reference::lookahead_sync(want[j], slow[j], 1 - keep);
    }
    EXPECT_TRUE(close(slots[0].slow.span<const float>(), want, {.abs = 0x1p-22})) << t;
    EXPECT_TRUE(same_bits(slots[0].param, slots[0].slow));
  }
  std::vector<LookaheadSlot> slots = make_slots({3});
  EXPECT_THROW(lookahead_sync(stream, slots, {.step = 0}), ShapeError);
  EXPECT_THROW(lookahead_sync(stream, slots, {.total = -1}), ShapeError);
}

TEST(Lookahead, InstructionSetsAgree) {
  Stream stream;
  std::vector<LookaheadSlot> want = make_slots({301});
  lookahead_sync(stream, want, {.alpha = 0.3F});
  for (LookaheadSync* body : LS_ISA_BODIES(lookahead_sync)) {
    std::vector<LookaheadSlot> got = make_slots({301});
    body(stream, got, {.alpha = 0.3F});
    EXPECT_TRUE(same_bits(got[0].slow, want[0].slow));
    EXPECT_TRUE(same_bits(got[0].param, want[0].param));
  }
}

TEST(Lookahead, RejectsSlotsThatDoNotMatch) {
  Stream stream;
  std::vector<LookaheadSlot> slots = make_slots({3, 4});
  slots[1].slow = Tensor::zeros({5}, Dtype::kF32);
  EXPECT_THROW(lookahead_sync(stream, slots, {}), ShapeError);
  slots[1].slow = Tensor::zeros({4}, Dtype::kF16);
  EXPECT_THROW(lookahead_sync(stream, slots, {}), DtypeError);
  slots[1].slow = {};
  EXPECT_THROW(lookahead_sync(stream, slots, {}), ShapeError) << "undefined";
}

TEST(Lookahead, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor tensor = Tensor::empty({10}, Dtype::kF32, Device::kDry);
  std::vector<LookaheadSlot> slots = {{tensor, tensor}};
  lookahead_sync(stream, slots, {});
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].op, "lookahead_sync");
  EXPECT_EQ(stream.ledger()[0].bytes, 160);
}

}  // namespace
}  // namespace lockstep::kernels::lookahead_test
