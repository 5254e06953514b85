// Lookahead's meeting of slow and fast weights, over many tensors.
//   slow = slow + (param - slow) * alpha;  param = slow;  copy = slow
// Source: Zhang et al. 2019, "Lookahead Optimizer: k steps forward, 1 step back".
// Spec: tests/reference/lookahead.h
#pragma once

#include <span>

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Without a state every call synchronizes the weights. With one (kernels/optim/loss_scale.h) call
// it after the optimizer of each step: it synchronizes after steps begin + k, begin + 2k, ... of
// those applied, and after step `begin` slow = param. Nothing changes after other steps, nor while
// found_inf is set.
struct LookaheadParams {
  float alpha = 0.5F;
  int64_t k = 1, begin = 0;
  Tensor state = {};
};

struct LookaheadSlot {  // one parameter; all of one shape
  Tensor param;         // the fast weights; f32
  Tensor slow;          // f32
  Tensor copy = {};  // f16 or bf16: the model's weight, where param is its master; may be undefined
};

// Updates every slot's slow, param and copy in place. Shapes: LookaheadSlot.
// Errors: ShapeError (also for k < 1), DtypeError, DeviceError.
using LookaheadSync = void(Stream& stream,
                           std::span<LookaheadSlot> slots,
                           const LookaheadParams& params);

LS_DECLARE_OP(LookaheadSync, lookahead_sync)

}  // namespace lockstep::kernels
