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

Conv2dOptions conv3x3(int64_t in_channels, int64_t out_channels, int stride = 1) {
  return {.in_channels = in_channels,
          .out_channels = out_channels,
          .kernel = 3,
          .stride = stride,
          .pad = 1,
          .bias = false};
}

}  // namespace

ProjectionShortcut::ProjectionShortcut(const Init& init,
                                       int64_t in_channels,
                                       int64_t out_channels,
                                       int stride)
    : conv_(init, conv1x1(in_channels, out_channels, stride)), bn_(init, out_channels) {
  register_module("0", conv_);
  register_module("1", bn_);
}

Var ProjectionShortcut::forward(const Var& x) {
  return bn_.forward(conv_.forward(x));
}

Var PaddingShortcut::forward(const Var& x) {
  return subsample_pad(x, out_channels_);
}

BasicBlock::BasicBlock(const Init& init,
                       const BlockOptions& options,
                       std::unique_ptr<Module> shortcut)
    : conv1_(init, conv3x3(options.in_channels, options.planes, options.stride)),
      bn1_(init, options.planes, true),
      conv2_(init, conv3x3(options.planes, options.planes)),
      bn2_(init, options.planes, true),
      shortcut_(std::move(shortcut)) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  register_module("conv2", conv2_);
  register_module("bn2", bn2_);
  if (shortcut_) register_module("downsample", *shortcut_);
}

Var BasicBlock::forward(const Var& x) {
  Var y = bn1_.forward(conv1_.forward(x));
  const Var features = conv2_.forward(y);
  y.forget();
  return bn2_.forward(features, shortcut_ ? shortcut_->forward(x) : x);
}

Bottleneck::Bottleneck(const Init& init,
                       const BlockOptions& options,
                       std::unique_ptr<Module> shortcut)
    : conv1_(init, conv1x1(options.in_channels, options.planes)),
      bn1_(init, options.planes, true),
      conv2_(init, conv3x3(options.planes, options.planes, options.stride)),
      bn2_(init, options.planes, true),
      conv3_(init, conv1x1(options.planes, options.planes * kExpansion)),
      bn3_(init, options.planes * kExpansion, true),
      shortcut_(std::move(shortcut)) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  register_module("conv2", conv2_);
  register_module("bn2", bn2_);
  register_module("conv3", conv3_);
  register_module("bn3", bn3_);
  if (shortcut_) register_module("downsample", *shortcut_);
}

Var Bottleneck::forward(const Var& x) {
  Var y1 = bn1_.forward(conv1_.forward(x));
  Var y2 = bn2_.forward(conv2_.forward(y1));
  y1.forget();
  const Var features = conv3_.forward(y2);
  y2.forget();
  return bn3_.forward(features, shortcut_ ? shortcut_->forward(x) : x);
}

}  // namespace lockstep::nn
