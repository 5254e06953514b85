// BlurPool: a blur before a convolution with a stride.
#pragma once

#include <memory>

#include "nn/layers.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// Convolves a blurred input: each channel with [1,2,1] x [1,2,1] / 16, zeros around the image. The
// convolution is the child "conv", the filters (C,1,3,3) are the buffer "blur_filter".
// Source: Zhang 2019, "Making Convolutional Networks Shift-Invariant Again"; ffcv-imagenet's
// BlurPoolConv2d.
class BlurPoolConv2d : public ConvToNorm {
 public:
  BlurPoolConv2d(const Init& init, const Conv2dOptions& options);
  Var forward(const Var& x) override { return conv_.forward(blurred(x)); }
  using ConvToNorm::to_norm;
  NormInput to_norm(const Var& x) override { return conv_.to_norm(blurred(x)); }

 private:
  Var blurred(const Var& x) const;

  Conv2d conv_;
  Tensor filter_;  // f32; 16 bits hold its values
};

// Returns a BlurPoolConv2d if `blur_pool` is set, the stride is above 1 and the input has 16
// channels or more, as in ffcv-imagenet; else a Conv2d.
std::unique_ptr<ConvToNorm> make_conv(const Init& init,
                                      const Conv2dOptions& options,
                                      bool blur_pool);

}  // namespace lockstep::nn
#pragma GCC visibility pop
