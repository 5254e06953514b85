#include <vector>

#include "kernels/optim/weight_averages.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/loss_scale_cases.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::lookahead_test {
namespace {

using testing::kFloatTypes;
using testing::loss_scale_state;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::same_bits;

class CudaLookahead : public testing::CudaTest {
 protected:
  // On the CPU and on the device, with the same state; bits must agree. Copies of f32: none.
  void expect_the_cpus_bits(const std::vector<int64_t>& lengths,
                            Dtype copy,
                            LookaheadParams params = {.alpha = 0.3F},
                            bool aligned = true,
                            const LossScaleState* state = nullptr) {
    std::vector<LookaheadSlot> want;
    std::vector<LookaheadSlot> got;
    const auto there = [&](const Tensor& tensor) {
      if (!tensor.defined()) return tensor;
      return aligned ? upload(tensor) : upload_misaligned(tensor);
    };
    uint64_t seed = 1;
    for (const int64_t n : lengths) {
      want.push_back({.param = random_tensor({n}, seed),
                      .slow = random_tensor({n}, seed + 1),
                      .copy = copy == Dtype::kF32 ? Tensor() : poisoned_tensor({n}, copy)});
      got.push_back({there(want.back().param), there(want.back().slow), there(want.back().copy)});
      seed += 2;
    }
    Stream cpu;
    if (state != nullptr) params.state = loss_scale_state(cpu, *state);
    lookahead_sync(cpu, want, params);
    if (state != nullptr) params.state = loss_scale_state(stream_, *state);
    lookahead_sync(stream_, got, params);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(same_bits(download(got[i].param), want[i].param)) << i;
      EXPECT_TRUE(same_bits(download(got[i].slow), want[i].slow)) << i;
      if (want[i].copy.defined()) {
        EXPECT_TRUE(same_bits(download(got[i].copy), want[i].copy)) << i;
      }
    }
  }
};

TEST_F(CudaLookahead, GivesTheCpusBitsInEveryTypeAlignedOrNot) {
  for (const Dtype copy : kFloatTypes) {
    for (const bool aligned : {true, false})
      expect_the_cpus_bits({9, 0, 8, 1, 39, 8192 + 11}, copy, {.alpha = 0.3F}, aligned);
  }
}

TEST_F(CudaLookahead, GivesTheCpusBitsForMoreTensorsThanATableHolds) {
  expect_the_cpus_bits(std::vector<int64_t>(250, 3), Dtype::kF16);
}

TEST_F(CudaLookahead, FollowsTheAppliedSteps) {
  for (const int64_t begin : {0, 1, 3}) {
    for (int64_t applied = 0; applied < 7; ++applied) {
      const LossScaleState state = {.applied = applied};
      for (const int64_t total : {0, 9}) {
        expect_the_cpus_bits({9, 100},
                             Dtype::kF16,
                             {.alpha = 0.3F, .k = 2, .begin = begin, .total = total},
                             true,
                             &state);
      }
    }
  }
}

TEST_F(CudaLookahead, ASkippedStepChangesNothing) {
  const LossScaleState state = {.found_inf = 1};
  expect_the_cpus_bits({9, 100}, Dtype::kF16, {}, true, &state);
}

}  // namespace
}  // namespace lockstep::kernels::lookahead_test
