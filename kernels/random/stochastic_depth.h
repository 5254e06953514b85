// Stochastic depth: for each image the branch of a residual block is left out at random, and scaled
// if it is kept, so that the mean stays the same. Adds the shortcut and applies ReLU in the same
// pass.
//   out[n] = relu(m(n) * branch[n] + shortcut[n])
//   grad_shortcut[n] = out[n] <= 0 ? 0 : grad_out[n];  grad_branch[n] = m(n) * grad_shortcut[n]
//   m(n) = draw < p * 2^32 ? 0 : 1 / (1 - p)
// The draw is the first number of the Philox stream of item images[n], with params.block for its
// epoch (core/philox.h); images[n] is as in kernels/random/dropout.h. No mask is stored. m is
// rounded to f32, each product and sum too, results to the tensors' dtype.
//
// As in PyTorch, a branch that is left out is multiplied by zero: NaN and infinity give NaN. NaN
// passes the ReLU and lets the gradient through. p = 1 leaves out every branch.
// Source: Huang et al. 2016, "Deep Networks with Stochastic Depth"; timm.layers.DropPath. Spec:
// tests/reference/stochastic_depth.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct StochasticDepthParams {
  double p = 0;  // probability of leaving a branch out
  uint64_t seed = 0;
  uint32_t block = 0;  // different for each block of a network
};

// Shapes: branch (N,...) f32, f16 or bf16; shortcut and out like branch; images (N) i64. out may be
// branch or shortcut. Errors: ShapeError (also unless 0 <= p <= 1), DtypeError, DeviceError.
using StochasticDepthForward = void(Stream& stream,
                                    const Tensor& branch,
                                    const Tensor& shortcut,
                                    const Tensor& images,
                                    const StochasticDepthParams& params,
                                    Tensor& out);
// Shapes: the same for all but images; out is the forward result. On entry grad is grad_out, on
// return grad_shortcut.
using StochasticDepthBackward = void(Stream& stream,
                                     const Tensor& out,
                                     const Tensor& images,
                                     const StochasticDepthParams& params,
                                     Tensor& grad,
                                     Tensor& grad_branch);

LS_DECLARE_OP(StochasticDepthForward, stochastic_depth_forward)
LS_DECLARE_OP(StochasticDepthBackward, stochastic_depth_backward)

}  // namespace lockstep::kernels
