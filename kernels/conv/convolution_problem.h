// One library call of a convolution or of a gradient of it: what a plan for it depends on.
#pragma once

#include <string>
#include <string_view>

#include "core/stream.h"
#include "kernels/conv/conv2d.h"

namespace lockstep::kernels {

enum class ConvolutionPass : uint8_t { kForward, kBackwardData, kBackwardWeight };

std::string_view name_of(ConvolutionPass pass);  // "forward"

// All tensors are of `dtype`, sums in f32.
struct ConvolutionProblem {
  ConvolutionPass pass = ConvolutionPass::kForward;
  Dtype dtype = Dtype::kF32;
  Shape in, weight;  // (N,C,H,W) of one shard, (K,C/groups,R,S)
  Conv2dParams params;
  bool has_bias = false;    // kForward's: added before the result is rounded
  bool gives_sums = false;  // kForward's: by channel, of the result and of its square
  bool norms_in = false;    // not kBackwardData's: `in` stands for max(0, in * scale + shift)

  bool is_fused() const { return gives_sums || norms_in; }
  Shape out() const { return conv2d_output_shape(in, weight, params); }
  // With as many channels as cuDNN's tensor-core engines take: zeros are added up to a multiple
  // of 4, which takes ResNet's stem from 103 MB of cuDNN's own workspace to none. Channels in
  // groups stay as they are.
  ConvolutionProblem padded() const;
  PlanKey key() const;
  // Requires: `key` is of key().
  static ConvolutionProblem of(const PlanKey& key);
  // "forward f16 256x3x224x224 -> 64, 7x7, stride 2, pad 3", then "32 groups" where there are any
  std::string text() const;
};

// The problem that a call poses, with the images of all shards.
ConvolutionProblem problem_of(const Conv2dForwardArgs& args);
ConvolutionProblem problem_of(const Conv2dBackwardWeightArgs& args);

}  // namespace lockstep::kernels
