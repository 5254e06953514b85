// Squeeze-and-excitation: channels are scaled by factors computed from the image.
#pragma once

#include "nn/layers.h"

namespace lockstep::nn {

// x * hard_sigmoid(conv_expand(relu(conv_reduce(mean of x over H and W)))): (N,C,H,W) -> (N,C,H,W).
// Source: Hu et al. 2017; timm's SqueezeExcite with gate_layer="hard_sigmoid".
class SqueezeExcite : public Module {
 public:
  SqueezeExcite(const Init& init, int64_t channels, int64_t reduced);
  Var forward(const Var& x) override;

 private:
  OnePixelConv2d reduce_;
  OnePixelConv2d expand_;
};

}  // namespace lockstep::nn
