// Averages of weights over steps: the moving average, and Lookahead's slow weights.
#pragma once

#include <span>

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// A moving average of many tensors.
//   ema = mu * ema + (1 - mu) * value;  mu = min(decay, (1 + t) / (10 + t)), t = 1, 2, ...
// mu and 1 - mu are computed in double; the rest is f32. Source: DeepLearningExamples' ConvNets,
// EMA; timm's ModelEmaV3 with its warm-up has the same shape. Spec: tests/reference/ema_update.h

struct EmaParams {
  double decay = 0.9999;
  int64_t step = 1;  // t, unless there is a state
  // See kernels/optim/loss_scale.h: t = applied + 1, and while found_inf is set nothing changes.
  Tensor state = {};
};

struct EmaSlot {  // of one shape
  Tensor param;   // the value; f32
  Tensor ema;     // f32; an element that equals its value keeps its bits
};

// Updates every slot's ema in place. Shapes: EmaSlot. Errors: ShapeError (also for a decay outside
// [0, 1) and step < 1), DtypeError, DeviceError.
using EmaUpdate = void(Stream& stream, std::span<EmaSlot> slots, const EmaParams& params);

LS_DECLARE_OP(EmaUpdate, ema_update)

// Lookahead's synchronization of slow and fast weights, over many tensors.
//   slow = slow + (param - slow) * alpha;  param = slow;  copy = slow
// With a total number of steps alpha falls. At step t = 1, 2, ... it is
//   1 - (1 - alpha) * (t / total)^3
// computed in double. Source: Zhang et al. 2019, "Lookahead Optimizer: k steps forward, 1 step
// back"; the falling alpha: airbench94, arXiv 2404.00498.
// Spec: tests/reference/lookahead.h

// Without a state every call synchronizes the weights. With a state (kernels/optim/loss_scale.h),
// call it after each step of the optimizer: it synchronizes after the applied steps begin + k,
// begin + 2k, ..., and after step `begin` it sets slow = param. Nothing changes after other steps,
// or while found_inf is set.
struct LookaheadParams {
  double alpha = 0.5;
  int64_t k = 1, begin = 0;
  int64_t step = 1, total = 0;  // t, unless there is a state; total 0: alpha is constant
  Tensor state = {};
};

struct LookaheadSlot {  // one parameter; all of one shape
  Tensor param;         // the fast weights; f32
  Tensor slow;          // f32
  Tensor copy = {};     // f16 or bf16: the model's weight, if param is its master; may be undefined
};

// Updates every slot's slow, param and copy in place. Shapes: LookaheadSlot.
// Errors: ShapeError (also for k < 1, step < 1 or total < 0), DtypeError, DeviceError.
using LookaheadSync = void(Stream& stream,
                           std::span<LookaheadSlot> slots,
                           const LookaheadParams& params);

LS_DECLARE_OP(LookaheadSync, lookahead_sync)

}  // namespace lockstep::kernels
