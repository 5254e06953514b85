#include "kernels/optim/adam.h"

#include <vector>

#include <fmt/core.h>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/loss_scale_cases.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::adam_test {
namespace {

using testing::kFloatTypes;
using testing::loss_scale_state;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;

struct Case {
  Dtype grad, copy;  // copy f32: none
  AdamParams params;
  int64_t step = 1;
};

class CudaAdam : public testing::CudaTest {
 protected:
  // Slots of these lengths on the CPU, the same values at every call.
  static std::vector<AdamSlot> slots_of(const std::vector<int64_t>& lengths, const Case& c) {
    std::vector<AdamSlot> slots;
    uint64_t seed = 1;
    for (const int64_t n : lengths) {
      slots.push_back({.param = random_tensor({n}, seed),
                       .grad = rounded_to(c.grad, random_tensor({n}, seed + 1, -8, 8)),
                       .exp_avg = random_tensor({n}, seed + 2),
                       .exp_avg_sq = random_tensor({n}, seed + 3, 0, 1),
                       .copy = c.copy == Dtype::kF32 ? Tensor() : poisoned_tensor({n}, c.copy)});
      seed += 4;
    }
    return slots;
  }

  AdamSlot uploaded(const AdamSlot& slot, bool aligned) {
    const auto there = [&](const Tensor& tensor) {
      if (!tensor.defined()) return tensor;
      return aligned ? upload(tensor) : upload_misaligned(tensor);
    };
    return {there(slot.param),
            there(slot.grad),
            there(slot.exp_avg),
            there(slot.exp_avg_sq),
            there(slot.copy)};
  }

  // The step on the CPU and on the device, with the same state; bits must agree.
  void expect_the_cpus_bits(const std::vector<int64_t>& lengths,
                            const Case& c,
                            bool aligned = true,
                            const LossScaleState* state = nullptr) {
    std::vector<AdamSlot> want = slots_of(lengths, c);
    std::vector<AdamSlot> got;
    for (const AdamSlot& slot : want) got.push_back(uploaded(slot, aligned));
    const std::vector<double> lrs = {0.1, 1e-3};
    AdamParams on_cpu = c.params;
    AdamParams on_device = c.params;
    Stream cpu;
    if (state != nullptr) {
      on_cpu.control = {loss_scale_state(cpu, *state), lr_table_of(lrs)};
      on_device.control = {loss_scale_state(stream_, *state), upload(lr_table_of(lrs))};
    }
    adam_step(cpu, want, on_cpu, c.step);
    adam_step(stream_, got, on_device, c.step);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(same_bits(download(got[i].param), want[i].param)) << i;
      EXPECT_TRUE(same_bits(download(got[i].grad), want[i].grad)) << i;
      EXPECT_TRUE(same_bits(download(got[i].exp_avg), want[i].exp_avg)) << i;
      EXPECT_TRUE(same_bits(download(got[i].exp_avg_sq), want[i].exp_avg_sq)) << i;
      if (want[i].copy.defined()) {
        EXPECT_TRUE(same_bits(download(got[i].copy), want[i].copy)) << i;
      }
    }
  }
};

const AdamParams kParams[] = {{.lr = 0.1},
                              {.lr = 0.1, .weight_decay = 0.1},
                              {.lr = 0.1, .weight_decay = 0.1, .decoupled = true},
                              {.lr = 0.1, .beta1 = 0, .beta2 = 0, .eps = 0.1}};
constexpr int64_t kChunk = 8192;

TEST_F(CudaAdam, GivesTheCpusBitsInEveryTypeAlignedOrNot) {
  int64_t step = 0;
  for (const AdamParams& params : kParams) {
    for (const Dtype grad : kFloatTypes) {
      for (const Dtype copy : kFloatTypes) {
        for (const bool aligned : {true, false}) {
          SCOPED_TRACE(fmt::format("{} {} {}", name_of(grad), name_of(copy), aligned));
          expect_the_cpus_bits({9, 0, 8, 1, 39}, {grad, copy, params, ++step}, aligned);
        }
      }
    }
  }
}

TEST_F(CudaAdam, GivesTheCpusBitsOverSeveralChunksAndTables) {
  std::vector<int64_t> lengths(150, 3);
  lengths[1] = kChunk + 11;
  lengths[149] = kChunk - 1;
  expect_the_cpus_bits(lengths, {Dtype::kF16, Dtype::kF16, kParams[2], 5000});
}

TEST_F(CudaAdam, UnscalesAndFollowsTheAppliedSteps) {
  for (const int64_t applied : {0, 1, 2, 3, 7, 1000, 123456789}) {
    const LossScaleState state = {.scale = 24, .applied = applied};
    for (const AdamParams& params : kParams)
      expect_the_cpus_bits({9, 100}, {Dtype::kF16, Dtype::kF16, params, 0}, true, &state);
  }
}

TEST_F(CudaAdam, ASkippedStepChangesNothing) {
  const LossScaleState state = {.found_inf = 1};
  expect_the_cpus_bits({9, kChunk + 1}, {Dtype::kF16, Dtype::kF16, kParams[2], 0}, true, &state);
}

}  // namespace
}  // namespace lockstep::kernels::adam_test
