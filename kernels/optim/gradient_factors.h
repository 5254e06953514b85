// Factors by which gradients are multiplied: to limit the norm of all together, or by LARC.
#pragma once

#include "core/shards.h"
#include "kernels/optim/step_control.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// By how much gradients must shrink for their norm to be `max_norm` at most.
//   norm = norms[last] / scale
//   factor = min(1, max_norm / (norm + 1e-6))
// Each step is rounded to f32; a NaN norm gives NaN, an infinite one 0. Source:
// torch.nn.utils.clip_grad_norm_ after GradScaler.unscale_. Spec: tests/reference/clip_factor.h
//
// Shapes: norms (n) f32, n >= 1, as tensor_norms gives them, of gradients times state.scale; state
// (kernels/optim/loss_scale.h) or undefined: a scale of 1; factor (1) f32, for StepControl.
// Errors: ShapeError (also for max_norm <= 0), DtypeError, DeviceError.
using ClipFactor =
    void(Stream& stream, const Tensor& norms, float max_norm, const Tensor& state, Tensor& factor);

LS_DECLARE_OP(ClipFactor, clip_factor)

// By how much LARC multiplies each tensor's decayed gradient, and with it the learning rate.
//   g = |grad| * grad_factor / scale
//   a = trust * |param| / (g + weight_decay * |param| + eps);  with clip a = min(a / lr, 1)
//   factor = 0 if g == 0, else 1 if |param| == 0, else a
// So a tensor without a gradient is not decayed, and one of zeros learns at lr. Each step is
// rounded to f32; NaN gives NaN. Source: Apex's parallel/LARC.py, clip=True and False; You et al.
// 2017, "Large Batch Training of Convolutional Networks". Spec: tests/reference/larc_factors.h

struct LarcParams {
  float trust = 0.02F, eps = 1e-8F;
  bool clip = true;
  double lr = 0;  // unless control has a table
  StepControl control = {};
};

// Shapes: norms (2 n + 1) f32 as tensor_norms gives them of n parameters, then of their n
// gradients, times control's scale; weight_decays (n) f32; factors (n) f32, n >= 1.
// Errors: ShapeError (also for trust <= 0), DtypeError, DeviceError.
using LarcFactors = void(Stream& stream,
                         const Tensor& norms,
                         const Tensor& weight_decays,
                         const LarcParams& params,
                         Tensor& factors);

LS_DECLARE_OP(LarcFactors, larc_factors)

}  // namespace lockstep::kernels
