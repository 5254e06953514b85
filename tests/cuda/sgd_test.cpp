#include "kernels/optim/sgd.h"

#include <vector>

#include <fmt/core.h>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/loss_scale_cases.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::sgd_test {
namespace {

using testing::kFloatTypes;
using testing::loss_scale_state;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;

struct Case {
  Dtype grad, copy;  // copy f32: none
  SgdParams params;
};

class CudaSgd : public testing::CudaTest {
 protected:
  // Slots of these lengths on the CPU, the same values at every call.
  static std::vector<SgdSlot> slots_of(const std::vector<int64_t>& lengths, const Case& c) {
    std::vector<SgdSlot> slots;
    uint64_t seed = 1;
    for (const int64_t n : lengths) {
      slots.push_back({.param = random_tensor({n}, seed),
                       .grad = rounded_to(c.grad, random_tensor({n}, seed + 1, -8, 8)),
                       .momentum = c.params.momentum == 0 ? Tensor() : random_tensor({n}, seed + 2),
                       .copy = c.copy == Dtype::kF32 ? Tensor() : poisoned_tensor({n}, c.copy),
                       .factor = n % 2 == 0 ? Tensor() : random_tensor({1}, seed + 7)});
      seed += 3;
    }
    return slots;
  }

  SgdSlot uploaded(const SgdSlot& slot, bool aligned) {
    const auto there = [&](const Tensor& tensor) {
      if (!tensor.defined()) return tensor;
      return aligned ? upload(tensor) : upload_misaligned(tensor);
    };
    return {there(slot.param),
            there(slot.grad),
            there(slot.momentum),
            there(slot.copy),
            there(slot.factor)};
  }

  // The step on the CPU and on the device, with the same state; bits must agree.
  void expect_the_cpus_bits(const std::vector<int64_t>& lengths,
                            const Case& c,
                            bool aligned = true,
                            const LossScaleState* state = nullptr) {
    std::vector<SgdSlot> want = slots_of(lengths, c);
    std::vector<SgdSlot> got;
    for (const SgdSlot& slot : want) got.push_back(uploaded(slot, aligned));
    const std::vector<double> lrs = {0.1, 0.5};
    SgdParams on_cpu = c.params;
    SgdParams on_device = c.params;
    Stream cpu;
    if (state != nullptr) {
      on_cpu.control = {loss_scale_state(cpu, *state), lr_table_of(lrs)};
      on_device.control = {loss_scale_state(stream_, *state), upload(lr_table_of(lrs))};
    }
    sgd_step(cpu, want, on_cpu);
    sgd_step(stream_, got, on_device);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(same_bits(download(got[i].param), want[i].param)) << i;
      EXPECT_TRUE(same_bits(download(got[i].grad), want[i].grad)) << i;
      if (want[i].momentum.defined()) {
        EXPECT_TRUE(same_bits(download(got[i].momentum), want[i].momentum)) << i;
      }
      if (want[i].copy.defined()) {
        EXPECT_TRUE(same_bits(download(got[i].copy), want[i].copy)) << i;
      }
    }
  }
};

const SgdParams kParams[] = {
    {.lr = 0.1F},
    {.lr = 0.1F, .weight_decay = 0.01F},
    {.lr = 0.1F, .momentum = 0.9F},
    {.lr = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F},
    {.lr = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F, .nesterov = true}};
constexpr int64_t kChunk = 8192;

TEST_F(CudaSgd, GivesTheCpusBitsInEveryTypeAlignedOrNot) {
  for (const SgdParams& params : kParams) {
    for (const Dtype grad : kFloatTypes) {
      for (const Dtype copy : kFloatTypes) {
        for (const bool aligned : {true, false}) {
          SCOPED_TRACE(fmt::format("{} {} {}", name_of(grad), name_of(copy), aligned));
          expect_the_cpus_bits({9, 0, 8, 1, 39}, {grad, copy, params}, aligned);
        }
      }
    }
  }
}

TEST_F(CudaSgd, GivesTheCpusBitsOverSeveralChunks) {
  for (const bool aligned : {true, false}) {
    expect_the_cpus_bits(
        {kChunk, 5, 2 * kChunk + 11, kChunk - 1}, {Dtype::kF16, Dtype::kF16, kParams[4]}, aligned);
  }
}

TEST_F(CudaSgd, GivesTheCpusBitsForMoreTensorsThanATableHolds) {
  const std::vector<int64_t> lengths(200, 3);
  expect_the_cpus_bits(lengths, {Dtype::kF16, Dtype::kBF16, kParams[3]});
}

TEST_F(CudaSgd, UnscalesAndFollowsTheAppliedSteps) {
  for (const int64_t applied : {0, 1, 9}) {
    const LossScaleState state = {.scale = 24, .applied = applied};
    expect_the_cpus_bits({9, 100}, {Dtype::kF16, Dtype::kF16, kParams[4]}, true, &state);
  }
}

TEST_F(CudaSgd, ASkippedStepChangesNothing) {
  const LossScaleState state = {.found_inf = 1};
  for (const SgdParams& params : kParams)
    expect_the_cpus_bits({9, kChunk + 1}, {Dtype::kF16, Dtype::kF16, params}, true, &state);
}

}  // namespace
}  // namespace lockstep::kernels::sgd_test
