// Factors by which gradients are multiplied: to clip their global norm, or for LARC.
#pragma once

#include "core/shards.h"
#include "kernels/optim/step_control.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// The factor that limits the global norm of gradients to `max_norm`.
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

// LARC's factor for each tensor's gradient, weight decay included, and thus for its learning rate.
//   g = |grad| * grad_factor / scale
//   a = trust * |param| / (g + weight_decay * |param| + eps);  with clip a = min(a / lr, 1)
//   factor = 0 if g == 0, else 1 if |param| == 0, else a
// So a tensor whose gradient is 0 is not decayed, and a tensor of zeros has the learning rate lr.
// Each step is rounded to f32; NaN gives NaN. Source: Apex's parallel/LARC.py, clip=True and False;
// You et al. 2017, "Large Batch Training of Convolutional Networks". Spec:
// tests/reference/larc_factors.h

struct LarcParams {
  float trust = 0.02F, eps = 1e-8F;
  bool clip = true;
  double lr = 0;  // ignored if control has a table
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
