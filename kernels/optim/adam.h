// One step of Adam or AdamW over many tensors. At step t:
//   Adam:   g = grad / scale + weight_decay * param
//   AdamW:  g = grad / scale;  param = param * (1 - lr * weight_decay)
//   exp_avg = exp_avg + (g - exp_avg) * (1 - beta1)
//   exp_avg_sq = exp_avg_sq * beta2 + g * g * (1 - beta2)
//   denom = sqrt(exp_avg_sq) / sqrt(1 - beta2^t) + eps
//   param = param - lr / (1 - beta1^t) * exp_avg / denom
//   copy = param
// Arithmetic is in f32; factors that are the same for all elements are computed in double and
// rounded once.
// Source: torch.optim.Adam and AdamW, single-tensor form. Spec: tests/reference/adam.h
#pragma once

#include <span>

#include "core/shards.h"
#include "kernels/optim/step_control.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct AdamParams {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;  // AdamW's weight decay
  StepControl control = {};
};

struct AdamSlot {  // one parameter; all of one shape
  Tensor param;    // f32, as are both averages
  Tensor grad;     // f32, f16 or bf16
  Tensor exp_avg;
  Tensor exp_avg_sq;
  Tensor copy = {};  // f16 or bf16: the model's weight, if param is its master; may be undefined
};

// Updates every slot's param, exp_avg, exp_avg_sq and copy in place. `step` counts from 1; with
// params.control.state it is ignored, and the device's count is used.
// Shapes: AdamSlot. Errors: ShapeError (also for step < 1), DtypeError, DeviceError.
using AdamStep = void(Stream& stream,
                      std::span<AdamSlot> slots,
                      const AdamParams& params,
                      int64_t step);

LS_DECLARE_OP(AdamStep, adam_step)

}  // namespace lockstep::kernels
