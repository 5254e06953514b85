#include <vector>

#include "kernels/optim/weight_averages.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/loss_scale_cases.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::ema_update_test {
namespace {

using testing::loss_scale_state;
using testing::random_tensor;
using testing::same_bits;

class CudaEmaUpdate : public testing::CudaTest {
 protected:
  // On the CPU and on the device, with the same state; bits must agree.
  void expect_the_cpus_bits(const std::vector<int64_t>& lengths,
                            EmaParams params,
                            bool aligned = true,
                            const LossScaleState* state = nullptr) {
    std::vector<EmaSlot> want;
    std::vector<EmaSlot> got;
    const auto there = [&](const Tensor& tensor) {
      return aligned ? upload(tensor) : upload_misaligned(tensor);
    };
    uint64_t seed = 1;
    for (const int64_t n : lengths) {
      want.push_back({.param = random_tensor({n}, seed), .ema = random_tensor({n}, seed + 1)});
      got.push_back({there(want.back().param), there(want.back().ema)});
      seed += 2;
    }
    Stream cpu;
    if (state != nullptr) params.state = loss_scale_state(cpu, *state);
    ema_update(cpu, want, params);
    if (state != nullptr) params.state = loss_scale_state(stream_, *state);
    ema_update(stream_, got, params);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(same_bits(download(got[i].ema), want[i].ema)) << i;
    }
  }
};

TEST_F(CudaEmaUpdate, GivesTheCpusBitsAlignedOrNot) {
  for (const bool aligned : {true, false}) {
    for (const int64_t step : {1, 1000})
      expect_the_cpus_bits({9, 0, 8, 1, 39, 8192 + 11}, {.decay = 0.9, .step = step}, aligned);
  }
}

TEST_F(CudaEmaUpdate, GivesTheCpusBitsForMoreTensorsThanATableHolds) {
  expect_the_cpus_bits(std::vector<int64_t>(250, 3), {.decay = 0.99});
}

TEST_F(CudaEmaUpdate, FollowsTheAppliedStepsAndSkips) {
  for (const int64_t applied : {0, 7, 5000}) {
    const LossScaleState state = {.applied = applied};
    expect_the_cpus_bits({9, 100}, {.decay = 0.99}, true, &state);
  }
  const LossScaleState skipped = {.found_inf = 1};
  expect_the_cpus_bits({9, 100}, {.decay = 0.99}, true, &skipped);
}

}  // namespace
}  // namespace lockstep::kernels::ema_update_test
