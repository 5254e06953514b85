// AlexNet, with torchvision's parameter names.
#pragma once

#include "nn/conv_stack.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

struct AlexNetOptions {
  int64_t classes = 1000;
  int64_t hidden = 4096;  // width of the classifier; fixed in torchvision
  double dropout = 0.5;
};

// Five convolutions, pooled to 6x6, and three linear layers: (N,3,H,W) -> (N,classes), where H and
// W are at least 63. Initial weights are PyTorch's defaults, bit for bit.
// Source: Krizhevsky 2014, "One weird trick"; torchvision.models.alexnet.
class AlexNet : public Module {
 public:
  static constexpr int64_t kSmallestImage = 63;  // height and width, in pixels

  AlexNet(const Init& init, const AlexNetOptions& options);
  Var forward(const Var& x) override;

 private:
  ConvStack features_;
  DenseHead classifier_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
