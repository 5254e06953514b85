// Describes one library call of a convolution or its gradient: everything that a plan for it
// depends on.
#pragma once

#include <string>
#include <string_view>

#include "core/stream.h"
#include "kernels/conv/conv2d.h"

namespace lockstep::kernels {

enum class ConvolutionPass : uint8_t { kForward, kBackwardData, kBackwardWeight };

std::string_view name_of(ConvolutionPass pass);  // "forward"

// All tensors have `dtype`; sums are in f32.
struct ConvolutionProblem {
  ConvolutionPass pass = ConvolutionPass::kForward;
  Dtype dtype = Dtype::kF32;
  Shape in, weight;  // (N,C,H,W) of one shard, (K,C/groups,R,S)
  Conv2dParams params;
  bool has_bias = false;    // kForward only: added before the result is rounded
  bool gives_sums = false;  // kForward only: per channel, of the result and of its square
  bool norms_in = false;    // not kBackwardData: the input is max(0, in * scale + shift)

  bool is_fused() const { return gives_sums || norms_in; }
  Shape out() const { return conv2d_output_shape(in, weight, params); }
  // The problem with input channels padded to a multiple of 4, which cuDNN's tensor-core engines
  // need; it saves ResNet's stem 103 MB of cuDNN's workspace. With groups channels are not padded.
  ConvolutionProblem padded() const;
  PlanKey key() const;
  // The inverse of key().
  static ConvolutionProblem of(const PlanKey& key);
  // "forward f16 256x3x224x224 -> 64, 7x7, stride 2, pad 3", with groups followed by "32 groups".
  std::string text() const;
};

// The problem of a call, with the images of all shards.
ConvolutionProblem problem_of(const Conv2dForwardArgs& args);
ConvolutionProblem problem_of(const Conv2dBackwardWeightArgs& args);

}  // namespace lockstep::kernels
