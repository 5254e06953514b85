// Residual blocks: a shortcut around two or three convolutions.
#pragma once

#include <memory>
#include <vector>

#include "nn/blur_pool.h"
#include "nn/layers.h"
#include "nn/squeeze_excite.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// Stochastic depth: in training each image leaves out a block's branch with probability p
// (kernels/random/stochastic_depth.h).
struct DropPath {
  double p = 0;
  uint32_t block = 0;  // index in the network
};
// The probability is 0 for the first block, `last` for the last one, and linear in between. Source:
// timm's ResNet.
DropPath drop_path_of(double last, int64_t block, int64_t blocks);

struct BlockOptions {
  int64_t in_channels = 0;
  int64_t planes = 0;  // channels of the 3x3 convolutions
  int stride = 1;      // stride of the first 3x3 convolution
  // A bottleneck's 3x3 convolution has group_width / 64 * planes channels per group.
  // Source: torchvision's ResNeXt.
  int groups = 1;
  int64_t group_width = 64;
  bool squeeze_excite = false;  // in a bottleneck, after its last norm
  bool blur_pool = false;       // for the convolution with the stride: make_conv()
  DropPath drop_path = {};

  int64_t width() const { return planes * group_width / 64 * groups; }
};

// 1x1 convolution and batch norm: (N,C,H,W) -> (N,K,ceil(H/stride),ceil(W/stride)).
class ProjectionShortcut : public Module {
 public:
  ProjectionShortcut(const Init& init,
                     int64_t in_channels,
                     int64_t out_channels,
                     int stride,
                     bool blur_pool = false);
  Var forward(const Var& x) override;

 private:
  std::unique_ptr<ConvToNorm> conv_;
  BatchNorm bn_;
};

// Takes every other pixel of every other row and adds channels of zeros on both sides. No
// parameters.
// Source: He et al. 2015, option A.
class PaddingShortcut : public Module {
 public:
  explicit PaddingShortcut(int64_t out_channels) : out_channels_(out_channels) {}
  Var forward(const Var& x) override;

 private:
  int64_t out_channels_;
};

// Base of the blocks: the convolutions take x.branch, the shortcut takes x.value.
class ResidualBlock : public Module {
 public:
  Var forward(const Var& x) override { return forward(unforked(x)).value; }
  virtual Forked forward(const Forked& x) = 0;
};

// A chain of blocks, which it owns. They are named "0", "1", ...
class ResidualStage : public ResidualBlock {
 public:
  explicit ResidualStage(std::vector<std::unique_ptr<ResidualBlock>> blocks);
  using ResidualBlock::forward;
  Forked forward(const Forked& x) override;

 private:
  std::vector<std::unique_ptr<ResidualBlock>> blocks_;
};

// relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)), both 3x3. A null shortcut is the identity.
class BasicBlock : public ResidualBlock {
 public:
  static constexpr int kExpansion = 1;

  BasicBlock(const Init& init, const BlockOptions& options, std::unique_ptr<Module> shortcut);
  using ResidualBlock::forward;
  Forked forward(const Forked& x) override;

 private:
  std::unique_ptr<ConvToNorm> conv1_;
  BatchNorm bn1_;
  Conv2d conv2_;
  BatchNorm bn2_;
  std::unique_ptr<Module> shortcut_;
  DropPath drop_path_;
};

// 1x1, 3x3 and 1x1 to four times the planes. The 3x3 has the stride, as in torchvision's version
// 1.5, and the groups. Squeeze-and-excitation is timm's with a sixteenth of the channels.
class Bottleneck : public ResidualBlock {
 public:
  static constexpr int kExpansion = 4;

  Bottleneck(const Init& init, const BlockOptions& options, std::unique_ptr<Module> shortcut);
  using ResidualBlock::forward;
  Forked forward(const Forked& x) override;

 private:
  Conv2d conv1_;
  BatchNorm bn1_;
  std::unique_ptr<ConvToNorm> conv2_;
  BatchNorm bn2_;
  Conv2d conv3_;
  BatchNorm bn3_;  // applies the ReLU, unless there is se_
  std::unique_ptr<SqueezeExcite> se_;
  std::unique_ptr<Module> shortcut_;
  DropPath drop_path_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
