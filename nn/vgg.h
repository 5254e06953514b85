// VGG with 16 layers, with torchvision's parameter names.
#pragma once

#include "nn/conv_stack.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

struct VggOptions {
  int64_t classes = 1000;
  bool batch_norm = false;
  int64_t hidden = 4096;  // width of the classifier; fixed in torchvision
  double dropout = 0.5;
};

// Thirteen 3x3 convolutions in five groups, each pooled, then pooled to 7x7, and three linear
// layers: (N,3,H,W) -> (N,classes), where H and W are at least 32. Initial weights are those that
// torchvision draws from the same generator: convolutions kaiming_normal (fan out), linear layers
// normal(0, 0.01), biases 0.
// Source: Simonyan and Zisserman 2014, configuration D; torchvision.models.vgg16, vgg16_bn.
class Vgg16 : public Module {
 public:
  static constexpr int64_t kSmallestImage = 32;  // height and width, in pixels

  Vgg16(const Init& init, const VggOptions& options);
  Var forward(const Var& x) override;

 private:
  ConvStack features_;
  DenseHead classifier_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
