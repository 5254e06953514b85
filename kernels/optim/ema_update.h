// A moving average of many tensors.
//   ema = mu * ema + (1 - mu) * value;  mu = min(decay, (1 + t) / (10 + t)), t = 1, 2, ...
// mu and 1 - mu are taken in double, then all is f32. Source: DeepLearningExamples' ConvNets, EMA;
// timm's ModelEmaV3 with its warm-up has the same shape. Spec: tests/reference/ema_update.h
#pragma once

#include <span>

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct EmaParams {
  double decay = 0.9999;
  int64_t step = 1;  // t, unless there is a state
  Tensor state =
      {};  // kernels/optim/loss_scale.h: t = applied + 1; while found_inf nothing changes
};

struct EmaSlot {  // of one shape
  Tensor param;   // the value; f32
  Tensor ema;     // f32
};

// Updates every slot's ema in place. Shapes: EmaSlot. Errors: ShapeError (also for a decay outside
// [0, 1) and step < 1), DtypeError, DeviceError.
using EmaUpdate = void(Stream& stream, std::span<EmaSlot> slots, const EmaParams& params);

LS_DECLARE_OP(EmaUpdate, ema_update)

}  // namespace lockstep::kernels
