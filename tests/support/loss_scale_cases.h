// Test cases of the loss scale, for the CPU and for CUDA.
#pragma once

#include <vector>

#include "core/transfer.h"
#include "kernels/optim/adam.h"
#include "kernels/optim/loss_scale.h"
#include "kernels/optim/sgd.h"
#include "tests/reference/loss_scale.h"
#include "tests/support/close.h"
#include "tests/support/golden.h"

namespace lockstep::testing {

inline Tensor loss_scale_state(Stream& stream, const kernels::LossScaleState& initial = {}) {
  Tensor state = Tensor::empty({kernels::kLossScaleStateBytes}, Dtype::kU8, stream.device());
  kernels::loss_scale_init(stream, initial, state);
  return state;
}

// A state in the middle of a training.
inline Tensor loss_scale_state(Stream& stream, float scale, int64_t applied, bool found_inf) {
  return loss_scale_state(stream,
                          {.scale = scale, .found_inf = found_inf ? 1 : 0, .applied = applied});
}

// Runs steps with one rule from its initial scale and compares them with the reference. found_inf
// is set in `bad_steps`.
inline void expect_trace(Stream& stream,
                         const kernels::LossScaleRule& rule,
                         float scale,
                         const std::vector<int>& bad_steps) {
  reference::LossScaler want = {.dynamic = rule.dynamic,
                                .growth_factor = rule.growth_factor,
                                .backoff_factor = rule.backoff_factor,
                                .growth_interval = rule.growth_interval,
                                .min_scale = rule.min_scale,
                                .scale = scale};
  Tensor state = loss_scale_state(stream, {.scale = scale});
  for (const int bad : bad_steps) {
    kernels::LossScaleState got = kernels::read_loss_scale(stream, state);
    got.found_inf = bad;
    kernels::loss_scale_init(stream, got, state);
    kernels::loss_scale_update(stream, rule, state);
    want.end_step(bad != 0);
    got = kernels::read_loss_scale(stream, state);
    EXPECT_EQ(got.scale, want.scale);
    EXPECT_EQ(got.growth_tracker, want.good_steps_in_a_row);
    EXPECT_EQ(got.consecutive_skips, want.bad_steps_in_a_row);
    EXPECT_EQ(got.applied, want.applied);
    EXPECT_EQ(got.skipped, want.skipped);
    EXPECT_EQ(got.found_inf, 0);
  }
}

// One golden training: scales and skipped steps must equal PyTorch's, and weights must be close to
// PyTorch's.
class ScaledTraining {
 public:
  ScaledTraining(Stream& stream, const GoldenCase& golden)
      : stream_(stream),
        golden_(golden),
        grads_(golden.tensor("grads")),
        param_(to_device(stream, golden.tensor("param_before"))),
        state_(loss_scale_state(stream, {.scale = number("init_scale")})) {
    for (Tensor* zeros : {&first_moment_, &second_moment_})
      *zeros = to_device(stream, Tensor::zeros(param_.shape(), Dtype::kF32));
    std::vector<double> lrs;
    for (int64_t i = 0; i < steps(); ++i) lrs.push_back(golden.number("lr/" + std::to_string(i)));
    control_ = {.state = state_, .lr_table = to_device(stream, kernels::lr_table_of(lrs))};
  }

  void expect_pytorch() {
    const kernels::LossScaleRule rule = {
        .growth_factor = golden_.number("growth_factor"),
        .backoff_factor = golden_.number("backoff_factor"),
        .growth_interval = static_cast<int32_t>(golden_.number("growth_interval"))};
    const Tensor params = golden_.tensor("params");
    for (int64_t i = 0; i < steps(); ++i) {
      const Tensor grad = scaled_grad(i);
      kernels::check_finite(stream_, {&grad, 1}, state_);
      step(grad);
      kernels::loss_scale_update(stream_, rule, state_);
      const kernels::LossScaleState now = kernels::read_loss_scale(stream_, state_);
      EXPECT_EQ(now.scale, golden_.tensor("scales").span<float>()[static_cast<size_t>(i)]);
      EXPECT_EQ(now.growth_tracker,
                golden_.tensor("growth_trackers").span<int32_t>()[static_cast<size_t>(i)]);
      EXPECT_EQ(now.applied + now.skipped, i + 1);
      const Tensor param = to_cpu(stream_, param_);
      EXPECT_TRUE(close(param.span<const float>(), params.slice(i, 1).span<float>(), {1e-6, 1e-6}));
    }
  }

 private:
  int64_t steps() const { return grads_.shape()[0]; }
  float number(const char* name) const { return static_cast<float>(golden_.number(name)); }

  // The gradient that a backward pass from the scaled loss gives.
  Tensor scaled_grad(int64_t step) {
    const float scale = kernels::read_loss_scale(stream_, state_).scale;
    const Tensor row = grads_.slice(step, 1);
    Tensor grad = Tensor::empty(param_.shape(), Dtype::kF32);
    for (size_t i = 0; i < grad.span<float>().size(); ++i)
      grad.span<float>()[i] = row.span<float>()[i] * scale;
    return to_device(stream_, grad);
  }

  void step(const Tensor& grad) {
    if (golden_.number("adam") != 0) {
      std::vector<kernels::AdamSlot> slots = {
          {.param = param_, .grad = grad, .exp_avg = first_moment_, .exp_avg_sq = second_moment_}};
      adam_step(
          stream_, slots, {.weight_decay = golden_.number("weight_decay"), .control = control_}, 0);
      return;
    }
    std::vector<kernels::SgdSlot> slots = {
        {.param = param_, .grad = grad, .momentum = first_moment_}};
    sgd_step(stream_,
             slots,
             {.momentum = number("momentum"),
              .weight_decay = number("weight_decay"),
              .control = control_});
  }

  Stream& stream_;
  const GoldenCase& golden_;
  Tensor grads_, param_, state_, first_moment_, second_moment_;
  kernels::StepControl control_;
};

}  // namespace lockstep::testing
