// conv2d by cuDNN: the bodies that run on CUDA streams when takes() is true. Contracts:
// kernels/conv/conv2d.h, kernels/conv/conv2d_fused.h.
#pragma once

#include <string>
#include <string_view>

#include "kernels/conv/conv2d.h"
#include "kernels/conv/conv2d_fused.h"
#include "kernels/conv/convolution_problem.h"

namespace lockstep::kernels::cudnn {

// Largest workspace of a call. resnet50 with 256 images in f32 needs slightly less.
inline constexpr size_t kMaxWorkspace = size_t{1} << 30;

inline constexpr size_t kAlignment = 16;  // of all operands, in bytes

// True when cuDNN can be called: false in builds without it, and under emulation.
bool is_available();
// The version, as "9.19.0". Errors: EnvironmentError when it cannot be loaded, and in builds
// without it.
std::string version();

// Tells whether cuDNN may compute such a call. The answer does not depend on the shard's size, so
// that results do not change with the number of ranks. False for an empty batch, and when rows are
// not multiples of 16 bytes.
bool fits(const ConvolutionProblem& problem);
// True when cuDNN computes such calls: fits(problem) and is_available().
bool takes(const ConvolutionProblem& problem);

// True when all tensors are aligned to kAlignment bytes, as plans require. An undefined tensor
// counts as aligned.
template <class... Tensors>
bool are_aligned(const Tensors&... tensors) {
  return (... && (reinterpret_cast<size_t>(tensors.bytes()) % kAlignment == 0));
}

// Workspace of a call on one shard in addition to its plan's, for operands that are copied to a
// layout that cuDNN takes.
size_t staged_bytes(const ConvolutionProblem& problem);

// Makes the engine with this ConvolutionPlan::choice() compute `problem` on this stream. Call it
// before the first call of that problem, which otherwise chooses an engine by the fixed rule.
// Errors: EnvironmentError when cuDNN has no such engine.
void keep_plan(Stream& stream, const ConvolutionProblem& problem, std::string_view choice);
// The workspace of a call on one such shard. Chooses the call's engine, as the call would. Errors:
// EnvironmentError when cuDNN has no engine.
size_t workspace_bytes(Stream& stream, const ConvolutionProblem& problem);

Conv2dForward conv2d_forward;
Conv2dFusedForward conv2d_fused_forward;
Conv2dBackwardData conv2d_backward_data;
Conv2dBackwardWeight conv2d_backward_weight;
Conv2dFusedBackwardWeight conv2d_fused_backward_weight;

}  // namespace lockstep::kernels::cudnn
