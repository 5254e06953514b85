// ResNet for 32x32 images, with the parameter names of the widely used akamaster/
// pytorch_resnet_cifar10.
#pragma once

#include <memory>
#include <vector>

#include "nn/layers.h"
#include "nn/residual_block.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// 3x3 stem of 16 channels, three stages of basic blocks (16, 32, 64 channels) with parameter-free
// shortcuts, average pool, linear: (N,3,H,W) -> (N,classes). Weights of convolutions and linear
// start as kaiming_normal (fan in).
// Source: He et al. 2015, section 4.2, option A.
class CifarResNet : public Module {
 public:
  // Requires: depth = 6 n + 2, n >= 1.
  // drop_path: probability for the last block, see drop_path_of().
  CifarResNet(const Init& init, int depth, int64_t classes = 10, double drop_path = 0);
  Var forward(const Var& x) override;

 private:
  Conv2d conv1_;
  BatchNorm bn1_;
  std::vector<std::unique_ptr<ResidualStage>> stages_;
  Linear linear_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
