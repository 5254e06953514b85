// Convolutions without bias before and after batch norms. A layer is computed by itself, or fused
// with its neighbors if that form was chosen (kernels/conv/conv2d_fused.h).
#pragma once

#include "nn/functional.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// Computes conv2d as the input of a batch norm, with the channels' sums if the fused form was
// chosen.
NormInput conv2d_to_norm(const Var& x, const Var& weight, const kernels::Conv2dParams& params);

// Tells whether norm_conv2d() may be used in this training step.
bool takes_norm(const NormInput& x,
                const BatchNormState& norm,
                const Var& weight,
                const kernels::Conv2dParams& params);
// Computes conv2d_to_norm of batch_norm(x, norm), whose value is never stored. Requires:
// takes_norm().
NormInput norm_conv2d(const NormInput& x,
                      BatchNormState& norm,
                      const Var& weight,
                      const kernels::Conv2dParams& params);

}  // namespace lockstep::nn
#pragma GCC visibility pop
