// A convolution without bias, fused with the batch norms before and after it, on CUDA, for layers
// that choose_form() has chosen. cuDNN has engines for it in f16, for some GPUs and shapes;
// measured time decides where they are used (trainers/planner).
//
// sums (2, local shards, K) f32: the sum of each channel's values of out in the shard, then the sum
// of their squares. cuDNN does not document whether they are taken before or after out is rounded.
// affine (2, local shards, C), of the type of in: scales, then shifts. If it is defined, the
// convolution's input is max(0, in * scale + shift), padded with zeros. Scale and shift are
// rounded: in f16 this costs an error of some 1e-3 of mean / deviation.
//
// Source: cuDNN's graph API, ConvBNfprop and ConvBNwgrad. Spec: tests/reference/conv2d.h,
// tests/reference/conv2d_fused.h
#pragma once

#include <vector>

#include "kernels/conv/convolution_problem.h"

namespace lockstep::kernels {

// Lists the fused forms of a forward pass on one shard, in f16 without bias or groups: with sums,
// with sums and a norm before it, and the gradient of the weights for the latter. Empty when no
// engine could compute them.
std::vector<ConvolutionProblem> fused_forms(const ConvolutionProblem& forward);

// The fused form of a call; with a norm before it if `affine` is defined.
ConvolutionProblem fused(ConvolutionProblem call, const Tensor& affine);

// From now on is_chosen() is true for this form of a layer, with any number of images.
void choose_form(Stream& stream, const ConvolutionProblem& form);
bool is_chosen(Stream& stream, const ConvolutionProblem& form);

// conv2d_forward and the sums of its result. Shapes: as there, and above; out and sums are
// overwritten, sums of an empty shard with +0. Errors: ShapeError, DtypeError, DeviceError; as
// conv2d_forward.
using Conv2dFusedForward = void(Stream& stream,
                                const Shards& shards,
                                const Conv2dForwardArgs& args,
                                const Tensor& affine,
                                Tensor& sums);
// conv2d_backward_weight for the normalized input. Shapes and errors: as there, and above.
using Conv2dFusedBackwardWeight = void(Stream& stream,
                                       const Shards& shards,
                                       const Conv2dBackwardWeightArgs& args,
                                       const Tensor& affine);

Conv2dFusedForward conv2d_fused_forward;
Conv2dFusedBackwardWeight conv2d_fused_backward_weight;
namespace cuda {
Conv2dFusedForward conv2d_fused_forward;
Conv2dFusedBackwardWeight conv2d_fused_backward_weight;
}  // namespace cuda

}  // namespace lockstep::kernels
