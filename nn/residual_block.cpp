#include "nn/residual_block.h"

#include <utility>

namespace lockstep::nn {
namespace {

Conv2dOptions conv1x1(int64_t in_channels, int64_t out_channels, int stride = 1) {
  return {.in_channels = in_channels,
          .out_channels = out_channels,
          .kernel = 1,
          .stride = stride,
          .bias = false};
}

Conv2dOptions conv3x3(int64_t in_channels, int64_t out_channels, int stride = 1, int groups = 1) {
  return {.in_channels = in_channels,
          .out_channels = out_channels,
          .kernel = 3,
          .stride = stride,
          .pad = 1,
          .bias = false,
          .groups = groups};
}

// relu(norm(y) + shortcut)
Forked join(const DropPath& drop_path, BatchNorm& norm, const NormInput& y, const Var& shortcut) {
  if (!norm.training() || drop_path.p == 0) return norm.forward(y, shortcut);
  return unforked(stochastic_depth(norm.before_relu(y), shortcut, drop_path.p, drop_path.block));
}

}  // namespace

DropPath drop_path_of(double last, int64_t block, int64_t blocks) {
  if (blocks == 1) return {};
  return {.p = last * static_cast<double>(block) / static_cast<double>(blocks - 1),
          .block = static_cast<uint32_t>(block)};
}

ProjectionShortcut::ProjectionShortcut(const Init& init,
                                       int64_t in_channels,
                                       int64_t out_channels,
                                       int stride)
    : conv_(init, conv1x1(in_channels, out_channels, stride)), bn_(init, out_channels) {
  register_module("0", conv_);
  register_module("1", bn_);
}

Var ProjectionShortcut::forward(const Var& x) {
  return bn_.forward(conv_.to_norm(x));
}

Var PaddingShortcut::forward(const Var& x) {
  return subsample_pad(x, out_channels_);
}

BasicBlock::BasicBlock(const Init& init,
                       const BlockOptions& options,
                       std::unique_ptr<Module> shortcut)
    : conv1_(init, conv3x3(options.in_channels, options.planes, options.stride)),
      bn1_(init, options.planes, {.relu = true}),
      conv2_(init, conv3x3(options.planes, options.planes)),
      bn2_(init, options.planes, {.relu = true}),
      shortcut_(std::move(shortcut)),
      drop_path_(options.drop_path) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  register_module("conv2", conv2_);
  register_module("bn2", bn2_);
  if (shortcut_) register_module("downsample", *shortcut_);
}

Forked BasicBlock::forward(const Forked& x) {
  NormInput y = conv1_.to_norm(x.branch);
  y = conv2_.to_norm(std::move(y), bn1_);
  return join(drop_path_, bn2_, y, shortcut_ ? shortcut_->forward(x.value) : x.value);
}

Bottleneck::Bottleneck(const Init& init,
                       const BlockOptions& options,
                       std::unique_ptr<Module> shortcut)
    : conv1_(init, conv1x1(options.in_channels, options.width())),
      bn1_(init, options.width(), {.relu = true}),
      conv2_(init, conv3x3(options.width(), options.width(), options.stride, options.groups)),
      bn2_(init, options.width(), {.relu = true}),
      conv3_(init, conv1x1(options.width(), options.planes * kExpansion)),
      bn3_(init, options.planes * kExpansion, {.relu = true}),
      shortcut_(std::move(shortcut)),
      drop_path_(options.drop_path) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  register_module("conv2", conv2_);
  register_module("bn2", bn2_);
  register_module("conv3", conv3_);
  register_module("bn3", bn3_);
  if (shortcut_) register_module("downsample", *shortcut_);
}

Forked Bottleneck::forward(const Forked& x) {
  NormInput y = conv1_.to_norm(x.branch);
  y = conv2_.to_norm(std::move(y), bn1_);
  y = conv3_.to_norm(std::move(y), bn2_);
  return join(drop_path_, bn3_, y, shortcut_ ? shortcut_->forward(x.value) : x.value);
}

ResidualStage::ResidualStage(std::vector<std::unique_ptr<ResidualBlock>> blocks)
    : blocks_(std::move(blocks)) {
  for (size_t i = 0; i < blocks_.size(); ++i) register_module(std::to_string(i), *blocks_[i]);
}

Forked ResidualStage::forward(const Forked& x) {
  Forked y = x;
  for (const std::unique_ptr<ResidualBlock>& block : blocks_) y = block->forward(y);
  return y;
}

}  // namespace lockstep::nn
