// Convolutions without bias next to batch norms, for networks that know the sequence. Each is a
// pass of its own, or one pass with its neighbors where that form of the layer was chosen
// (kernels/conv/conv2d_fused.h).
#pragma once

#include "nn/functional.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// Computes conv2d for the batch norm after it, with sums where that form was chosen.
NormInput conv2d_to_norm(const Var& x, const Var& weight, const kernels::Conv2dParams& params);

// Tells whether norm_conv2d() may compute this step of a training.
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
