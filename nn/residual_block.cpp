#include "nn/residual_block.h"

#include <utility>

#include "nn/conv_options.h"

namespace lockstep::nn {
namespace {

std::unique_ptr<SqueezeExcite> squeeze_excite(const Init& init, int64_t channels) {
  const double sixteenth = static_cast<double>(channels) / 16;
  return std::make_unique<SqueezeExcite>(
      init,
      SqueezeExciteOptions{.channels = channels, .reduced = nearest_multiple(sixteenth, 8, 0)});
}

// relu(branch + shortcut); in training the branch may be left out.
Forked join(const DropPath& drop_path, bool training, const Var& branch, const Var& shortcut) {
  if (!training || drop_path.p == 0) return unforked(relu(add(branch, shortcut)));
  return unforked(stochastic_depth(branch, shortcut, drop_path.p, drop_path.block));
}

// Joins the branch norm(y) and the shortcut, where `norm` applies the ReLU.
Forked join(const DropPath& drop_path, BatchNorm& norm, const NormInput& y, const Var& shortcut) {
  if (!norm.training() || drop_path.p == 0) return norm.forward(y, shortcut);
  return join(drop_path, true, norm.before_activation(y), shortcut);
}

}  // namespace

DropPath drop_path_of(double last, int64_t block, int64_t blocks) {
  if (blocks == 1) return {};
  return {.p = last * static_cast<double>(block) / static_cast<double>(blocks - 1),
          .block = static_cast<uint32_t>(block)};
}

ProjectionShortcut::ProjectionShortcut(
    const Init& init, int64_t in_channels, int64_t out_channels, int stride, bool blur_pool)
    : conv_(make_conv(init, conv1x1(in_channels, out_channels, stride), blur_pool)),
      bn_(init, out_channels) {
  register_module("0", *conv_);
  register_module("1", bn_);
}

Var ProjectionShortcut::forward(const Var& x) {
  return bn_.forward(conv_->to_norm(x));
}

Var PaddingShortcut::forward(const Var& x) {
  return subsample_pad(x, out_channels_);
}

BasicBlock::BasicBlock(const Init& init,
                       const BlockOptions& options,
                       std::unique_ptr<Module> shortcut)
    : conv1_(make_conv(
          init, conv3x3(options.in_channels, options.planes, options.stride), options.blur_pool)),
      bn1_(init, options.planes, {.activation = Activation::kRelu}),
      conv2_(init, conv3x3(options.planes, options.planes)),
      bn2_(init, options.planes, {.activation = Activation::kRelu}),
      shortcut_(std::move(shortcut)),
      drop_path_(options.drop_path) {
  register_module("conv1", *conv1_);
  register_module("bn1", bn1_);
  register_module("conv2", conv2_);
  register_module("bn2", bn2_);
  if (shortcut_) register_module("downsample", *shortcut_);
}

Forked BasicBlock::forward(const Forked& x) {
  NormInput y = conv1_->to_norm(x.branch);
  y = conv2_.to_norm(std::move(y), bn1_);
  return join(drop_path_, bn2_, y, shortcut_ ? shortcut_->forward(x.value) : x.value);
}

Bottleneck::Bottleneck(const Init& init,
                       const BlockOptions& options,
                       std::unique_ptr<Module> shortcut)
    : conv1_(init, conv1x1(options.in_channels, options.width())),
      bn1_(init, options.width(), {.activation = Activation::kRelu}),
      conv2_(make_conv(init,
                       conv3x3(options.width(), options.width(), options.stride, options.groups),
                       options.blur_pool)),
      bn2_(init, options.width(), {.activation = Activation::kRelu}),
      conv3_(init, conv1x1(options.width(), options.planes * kExpansion)),
      bn3_(init,
           options.planes * kExpansion,
           {.activation = options.squeeze_excite ? Activation::kNone : Activation::kRelu}),
      se_(options.squeeze_excite ? squeeze_excite(init, options.planes * kExpansion) : nullptr),
      shortcut_(std::move(shortcut)),
      drop_path_(options.drop_path) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  register_module("conv2", *conv2_);
  register_module("bn2", bn2_);
  register_module("conv3", conv3_);
  register_module("bn3", bn3_);
  if (se_) register_module("se", *se_);
  if (shortcut_) register_module("downsample", *shortcut_);
}

Forked Bottleneck::forward(const Forked& x) {
  NormInput y = conv1_.to_norm(x.branch);
  y = conv2_->to_norm(std::move(y), bn1_);
  y = conv3_.to_norm(std::move(y), bn2_);
  const Var shortcut = shortcut_ ? shortcut_->forward(x.value) : x.value;
  if (se_) return join(drop_path_, bn3_.training(), se_->forward(bn3_.forward(y)), shortcut);
  return join(drop_path_, bn3_, y, shortcut);
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
