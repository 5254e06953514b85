// By how much gradients must shrink for their norm to be `max_norm` at most.
//   norm = norms[last] / scale
//   factor = min(1, max_norm / (norm + 1e-6))
// Each step is rounded to f32; a NaN norm gives NaN, an infinite one 0. Source:
// torch.nn.utils.clip_grad_norm_ after GradScaler.unscale_. Spec: tests/reference/clip_factor.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: norms (n) f32, n >= 1, as tensor_norms gives them, of gradients times state.scale; state
// (kernels/optim/loss_scale.h) or undefined: a scale of 1; factor (1) f32, for StepControl.
// Errors: ShapeError (also for max_norm <= 0), DtypeError, DeviceError.
using ClipFactor =
    void(Stream& stream, const Tensor& norms, float max_norm, const Tensor& state, Tensor& factor);

LS_DECLARE_OP(ClipFactor, clip_factor)

}  // namespace lockstep::kernels
