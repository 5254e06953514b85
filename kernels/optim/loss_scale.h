// Loss scaling with its state on the stream's device, so that no step waits for the host:
//   loss_scale_seed, from which backward() starts,
//   check_finite on the gradients as all ranks sum them (hence the same answer everywhere),
//   optimizers under a StepControl (kernels/optim/step_control.h), which step or skip by it,
//   loss_scale_update, which begins the next step.
// Source: torch.amp.GradScaler. Spec: tests/reference/loss_scale.h
#pragma once

#include <span>

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct LossScaleState {
  float scale = 65536;
  int32_t growth_tracker = 0;     // applied steps since the scale last changed
  int32_t found_inf = 0;          // 1: a gradient of this step is not finite
  int32_t consecutive_skips = 0;  // up to the last step
  int64_t applied = 0;            // number of applied steps
  int64_t skipped = 0;
};

// On a device the state is a tensor (kLossScaleStateBytes) of u8.
inline constexpr int64_t kLossScaleStateBytes = sizeof(LossScaleState);
static_assert(kLossScaleStateBytes == 32);

struct LossScaleRule {
  bool dynamic = true;  // false: the scale is constant
  double growth_factor = 2, backoff_factor = 0.5;
  int32_t growth_interval = 2000;
  float min_scale = 1;
};

// state = initial. Shapes: state (kLossScaleStateBytes) of u8. Errors: ShapeError, DtypeError,
// DeviceError.
using LossScaleInit = void(Stream& stream, const LossScaleState& initial, Tensor& state);
// seeds[i] = scale. Shapes: seeds (n) of f32.
using LossScaleSeed = void(Stream& stream, const Tensor& state, Tensor& seeds);
// Sets found_inf if an element of any bucket is infinite or NaN. Shapes: buckets any, f32, f16 or
// bf16 each.
using CheckFinite = void(Stream& stream, std::span<const Tensor> buckets, Tensor& state);
// Ends a step. found_inf: scale = max(scale * backoff_factor, min_scale), one more skip. Otherwise
// one more applied step; after growth_interval in a row scale = scale * growth_factor, unless that
// is infinite. Products are taken in double and rounded to f32. found_inf is cleared.
// Errors: ShapeError also for growth_factor <= 1, backoff_factor outside (0, 1) and
// growth_interval < 1.
using LossScaleUpdate = void(Stream& stream, const LossScaleRule& rule, Tensor& state);

LS_DECLARE_OP(LossScaleInit, loss_scale_init)
LS_DECLARE_OP(LossScaleSeed, loss_scale_seed)
LS_DECLARE_OP(CheckFinite, check_finite)
LS_DECLARE_OP(LossScaleUpdate, loss_scale_update)

// Waits for all queued work and returns the state.
LossScaleState read_loss_scale(Stream& stream, const Tensor& state);

}  // namespace lockstep::kernels
