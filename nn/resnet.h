// ResNet for ImageNet-sized images, with torchvision's parameter names, and SE-ResNet with timm's.
#pragma once

#include <memory>
#include <vector>

#include "nn/layers.h"
#include "nn/residual_block.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

struct ResNetOptions {
  int64_t classes = 1000;
  bool cifar_stem = false;          // 3x3 convolution of stride 1, no max-pool: for 32x32 images
  bool zero_init_residual = false;  // initially each block computes only its shortcut
  // The bottlenecks' 3x3 convolutions: resnext50_32x4d has groups = 32, group_width = 4.
  int groups = 1;
  int64_t group_width = 64;
  bool squeeze_excite = false;  // in the bottlenecks: seresnet50
  bool blur_pool = false;       // before convolutions with a stride: make_conv()
  double drop_path = 0;         // probability for the last block: drop_path_of()
};

// Stem, four stages of blocks, average pool, fc: (N,3,H,W) -> (N,classes). Initial weights are
// those that torchvision draws from the same generator: convolutions kaiming_normal (fan out), fc
// PyTorch's default.
// Source: He et al. 2015; Xie et al. 2016, "Aggregated Residual Transformations"; torchvision's
// models.resnet, version 1.5; Hu et al. 2017; timm's models.resnet.
class ResNet : public Module {
 public:
  // Requires: depth is 18, 34, 50, 101 or 152; with 18 and 34, groups = 1 and no squeeze_excite.
  ResNet(const Init& init, int depth, const ResNetOptions& options);
  Var forward(const Var& x) override;

 private:
  Conv2d conv1_;
  BatchNorm bn1_;
  std::unique_ptr<MaxPool2d> pool_;
  std::vector<std::unique_ptr<ResidualStage>> stages_;
  Linear fc_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
