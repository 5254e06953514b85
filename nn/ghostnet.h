// GhostNet, with timm's parameter names.
#pragma once

#include <memory>
#include <vector>

#include "nn/ghost_block.h"
#include "nn/layers.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

struct GhostNetOptions {
  int64_t classes = 1000;
  double dropout = 0.2;
};

// Stem, sixteen blocks in nine stages, a 1x1 convolution, average pool, a hidden layer of 1280 and
// the classifier: (N,3,H,W) -> (N,classes). Initial weights are PyTorch's defaults, bit for bit.
// Source: Han et al. 2020; timm's ghostnet_100.
class GhostNet : public Module {
 public:
  GhostNet(const Init& init, const GhostNetOptions& options);
  Var forward(const Var& x) override;

 private:
  Conv2d conv_stem_;
  BatchNorm bn1_;
  std::vector<std::unique_ptr<Sequential>> stages_;
  Conv2d last_conv_;
  BatchNorm last_norm_;
  OnePixelConv2d conv_head_;
  Dropout dropout_;
  Linear classifier_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
