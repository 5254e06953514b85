// Squeeze-and-excitation: a layer that scales channels by factors computed from the image.
#pragma once

#include <string>

#include "nn/layers.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// The multiple of `divisor` nearest to `count`, at least `divisor`; the next one if that is less
// than limit * count. Source: timm's make_divisible.
int64_t nearest_multiple(double count, int64_t divisor, double limit);

struct SqueezeExciteOptions {
  int64_t channels = 0;
  int64_t reduced = 0;  // channels between the two convolutions
  kernels::GateForm gate = kernels::GateForm::kSigmoid;
  std::string reduce_name = "fc1";
  std::string expand_name = "fc2";
};

// x * gate(expand(relu(reduce(mean of x over H and W)))): (N,C,H,W) -> (N,C,H,W).
// Source: Hu et al. 2017; timm's SEModule and SqueezeExcite.
class SqueezeExcite : public Module {
 public:
  SqueezeExcite(const Init& init, const SqueezeExciteOptions& options);
  Var forward(const Var& x) override;

 private:
  kernels::GateForm gate_;
  OnePixelConv2d reduce_;
  OnePixelConv2d expand_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
