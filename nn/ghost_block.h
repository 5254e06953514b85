// GhostNet's blocks: half of the channels are computed from the others by cheap filters.
#pragma once

#include <memory>

#include "nn/layers.h"
#include "nn/squeeze_excite.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// A 1x1 convolution to half of the channels; a 3x3 filter on each of those makes the other half;
// batch norm after both, with the activation: (N,C,H,W) -> (N,K,H,W). Requires: K even.
class GhostModule : public Module {
 public:
  GhostModule(const Init& init, int64_t in_channels, int64_t out_channels, Activation activation);
  Var forward(const Var& x) override;

 private:
  Conv2d primary_;
  BatchNorm primary_norm_;
  DepthwiseConv2d cheap_;
  BatchNorm cheap_norm_;
};

struct GhostBlockOptions {
  int64_t in_channels = 0;
  int64_t middle = 0;  // channels between the two ghost modules
  int64_t out_channels = 0;
  int kernel = 3;  // of the depthwise convolutions
  int stride = 1;
  bool squeeze_excite = false;
};

// Ghost module, a depthwise convolution if there is a stride, squeeze-and-excitation if asked for,
// and a ghost module without ReLU; plus the shortcut: a depthwise and a 1x1 convolution if the
// shape changes, else the input.
class GhostBottleneck : public Module {
 public:
  GhostBottleneck(const Init& init, const GhostBlockOptions& options);
  Var forward(const Var& x) override;

 private:
  GhostModule ghost1_;
  std::unique_ptr<DepthwiseConv2d> conv_dw_;
  std::unique_ptr<BatchNorm> bn_dw_;
  std::unique_ptr<SqueezeExcite> se_;
  GhostModule ghost2_;
  std::unique_ptr<Module> shortcut_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
