// One step of stochastic gradient descent over many tensors.
//   g = grad + weight_decay * param;  buf = momentum * buf + g;  g = nesterov ? g + momentum * buf
//   : buf param = param - lr * g
// Without momentum there is no buf and g is used as it is. A buffer of zeros is PyTorch's first
// step. Source: torch.optim.SGD (dampening = 0). Spec: tests/reference/sgd.h
#pragma once

#include <span>

#include "core/shards.h"
#include "kernels/dispatch.h"

namespace lockstep::kernels {

struct SgdParams {
  float lr = 0, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};

struct SgdSlot {  // one parameter; all f32 of the same number of elements
  Tensor param;
  Tensor grad;
  Tensor momentum;  // undefined when params.momentum == 0
};

// Updates every slot's param and momentum in place. Shapes: SgdSlot.
// Errors: ShapeError (also when nesterov is asked for without momentum), DtypeError, DeviceError.
using SgdStep = void(Stream& stream, std::span<SgdSlot> slots, const SgdParams& params);

LS_DECLARE_OP(SgdStep, sgd_step)

}  // namespace lockstep::kernels
