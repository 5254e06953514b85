// One step of stochastic gradient descent over many tensors.
//   g = (grad / scale + weight_decay * param) * factor
//   buf = momentum * buf + g
//   param = param - lr * (nesterov ? g + momentum * buf : buf)
//   copy = param
// Without momentum there is no buf, and g is used in its place. Starting with a buffer of zeros is
// equivalent to PyTorch's first step. Arithmetic is in f32. Source: torch.optim.SGD (dampening =
// 0). Spec: tests/reference/sgd.h
#pragma once

#include <span>

#include "core/shards.h"
#include "kernels/optim/step_control.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct SgdParams {
  double lr = 0;
  float momentum = 0, weight_decay = 0;
  bool nesterov = false;
  StepControl control = {};
};

struct SgdSlot {       // one parameter; all of one shape
  Tensor param;        // f32
  Tensor grad;         // f32, f16 or bf16
  Tensor momentum;     // f32; undefined when params.momentum == 0
  Tensor copy = {};    // f16 or bf16: the model's weight, if param is its master; may be undefined
  Tensor factor = {};  // (1), f32, of kernels/optim/gradient_factors.h; undefined: 1
};

// Updates every slot's param, momentum and copy in place. Shapes: SgdSlot.
// Errors: ShapeError (also for nesterov without momentum), DtypeError, DeviceError.
using SgdStep = void(Stream& stream, std::span<SgdSlot> slots, const SgdParams& params);

LS_DECLARE_OP(SgdStep, sgd_step)

}  // namespace lockstep::kernels
