// Lookahead's meeting of slow and fast weights, over many tensors.
//   slow = slow + (param - slow) * alpha;  param = slow
// Source: Zhang et al. 2019, "Lookahead Optimizer: k steps forward, 1 step back".
// Spec: tests/reference/lookahead.h
#pragma once

#include <span>

#include "core/shards.h"
#include "kernels/dispatch.h"

namespace lockstep::kernels {

struct LookaheadSlot {  // one parameter; both f32 of the same number of elements
  Tensor param;         // the fast weights
  Tensor slow;
};

// Updates every slot's slow and param in place. Shapes: LookaheadSlot.
// Errors: ShapeError, DtypeError, DeviceError.
using LookaheadSync = void(Stream& stream, std::span<LookaheadSlot> slots, float alpha);

LS_DECLARE_OP(LookaheadSync, lookahead_sync)

}  // namespace lockstep::kernels
