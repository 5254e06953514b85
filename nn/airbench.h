// The networks of airbench, which train to 94 to 96 % on CIFAR-10 in few steps, with the parameter
// names of the original.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "nn/layers.h"
#include "nn/whitening.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

struct AirbenchOptions {
  int64_t classes = 10;
  std::array<int64_t, 3> widths = {64, 256, 256};  // output channels of each group
  bool residual =
      false;  // a third convolution per group, and a shortcut around the second and third
  float norm_momentum = 0.4F;
};

// Options of the network named for this accuracy in percent. Requires: 94, 95 or 96.
AirbenchOptions airbench_options(int accuracy);

// conv3, pool2, norm, GELU, conv3, norm, GELU: (N,C,H,W) -> (N,K,H/2,W/2). Convolutions are
// initialized to the identity on their first channels, and the norms' weights stay 1.
class AirbenchGroup : public Module {
 public:
  AirbenchGroup(const Init& init,
                int64_t in_channels,
                int64_t out_channels,
                const AirbenchOptions& options);
  Var forward(const Var& x) override;

 private:
  Conv2d conv1_;
  MaxPool2d pool_;
  BatchNorm norm1_;
  Conv2d conv2_;
  BatchNorm norm2_;
  std::unique_ptr<Conv2d> conv3_;
  std::unique_ptr<BatchNorm> norm3_;
};

// 2x2 whitening with GELU, three groups, 3x3 max-pool, linear without bias, divided by 9:
// (N,3,H,W) -> (N,classes), f32, for images from 25x25 to 48x48 pixels. Fit the whitening layer
// (nn/whitening.h) before the first step of a training.
// Source: Jordan 2024, arXiv 2404.00498; github.com/KellerJordan/cifar10-airbench.
class Airbench : public Module {
 public:
  static constexpr int64_t kSmallestImage = 25, kLargestImage = 48;  // height and width, in pixels

  Airbench(const Init& init, const AirbenchOptions& options);
  Var forward(const Var& x) override;

 private:
  Whitening whitening_;
  std::vector<std::unique_ptr<AirbenchGroup>> groups_;
  MaxPool2d pool_;
  Linear linear_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
