// conv2d by cuDNN: the bodies that CUDA streams get where cuDNN takes the call. Contracts:
// kernels/conv/conv2d.h, kernels/conv/conv2d_fused.h.
#pragma once

#include <string>
#include <string_view>

#include "kernels/conv/conv2d.h"
#include "kernels/conv/conv2d_fused.h"
#include "kernels/conv/convolution_problem.h"

namespace lockstep::kernels::cudnn {

// Largest workspace of a call. resnet50 with 256 images in f32 asks for slightly less.
inline constexpr size_t kMaxWorkspace = size_t{1} << 30;

inline constexpr size_t kAlignment = 16;  // bytes, of all operands

// Whether there is a cuDNN to call: not in builds without it, nor under emulation.
bool is_there();
// "9.19.0". Errors: EnvironmentError where it cannot be loaded, and in builds without it.
std::string version();

// Whether such calls are cuDNN's. The answer is the same for a shard of any size, so that a run
// does not change with the number of ranks. False for an empty batch, and where rows are not of
// whole 16 bytes.
bool fits(const ConvolutionProblem& problem);
// True where cuDNN computes such calls: where it fits, and is_there().
bool takes(const ConvolutionProblem& problem);

// Whether all of these begin where cuDNN may read and write kAlignment bytes at once, as plans are
// promised. An undefined tensor does.
template <class... Tensors>
bool are_aligned(const Tensors&... tensors) {
  return (... && (reinterpret_cast<size_t>(tensors.bytes()) % kAlignment == 0));
}

// Workspace of a call on one shard beside its plan's: what is copied for cuDNN's sake.
size_t staged_bytes(const ConvolutionProblem& problem);

// Settles which engine computes `problem` on this stream: the one whose ConvolutionPlan::choice()
// this is. Without it, or after a call of that problem, it is the rule's. Errors: EnvironmentError
// where cuDNN has no such engine.
void keep_plan(Stream& stream, const ConvolutionProblem& problem, std::string_view choice);
// The workspace that a call on one such shard takes. Settles its engine, as the call would. Errors:
// EnvironmentError where cuDNN has none.
size_t workspace_bytes(Stream& stream, const ConvolutionProblem& problem);

Conv2dForward conv2d_forward;
Conv2dFusedForward conv2d_fused_forward;
Conv2dBackwardData conv2d_backward_data;
Conv2dBackwardWeight conv2d_backward_weight;
Conv2dFusedBackwardWeight conv2d_fused_backward_weight;

}  // namespace lockstep::kernels::cudnn
