// A convolution without bias in one pass with the batch norms before it and after it, on CUDA: for
// layers that choose_form() names. cuDNN has engines for it in f16, for some cards and shapes;
// time decides where they are used (trainers/planner).
//
// sums (2, local shards, K) f32: of each channel's values of out in the shard, then of their
// squares. Whether cuDNN takes them before or after out is rounded it does not say.
// affine (2, local shards, C), of the type of in: scales, then shifts. Where it is defined, args.in
// stands for max(0, in * scale + shift), and what pads it is zero. Both are rounded: in f16 the
// result is off by some 1e-3 of mean / deviation.
//
// Source: cuDNN's graph API, ConvBNfprop and ConvBNwgrad. Spec: tests/reference/conv2d.h,
// tests/reference/conv2d_fused.h
#pragma once

#include <vector>

#include "kernels/conv/convolution_problem.h"

namespace lockstep::kernels {

// Lists the fused forms of a forward pass in f16 of one shard, without bias or groups: with sums,
// with sums and a norm ahead, and the gradient of the weights that goes with the latter. Empty
// where no engine would take it.
std::vector<ConvolutionProblem> fused_forms(const ConvolutionProblem& forward);

// The form of a call that takes `affine` in, where that is defined.
ConvolutionProblem fused(ConvolutionProblem call, const Tensor& affine);

// From now on is_chosen() says so of this form of a layer, for any number of images.
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
// conv2d_backward_weight of what args.in stands for. Shapes and errors: as there, and above.
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
