#include "nn/ghostnet.h"

#include <utility>

#include <fmt/core.h>

#include "nn/conv_options.h"

namespace lockstep::nn {
namespace {

constexpr int64_t kStemChannels = 16;
constexpr int64_t kLastChannels = 960;
constexpr int64_t kHidden = 1280;

struct Block {
  int kernel;
  int64_t middle, out_channels;
  bool squeeze_excite;
  int stride;
};

// The blocks of each stage.
std::vector<std::vector<Block>> stage_table() {
  return {{{3, 16, 16, false, 1}},
          {{3, 48, 24, false, 2}},
          {{3, 72, 24, false, 1}},
          {{5, 72, 40, true, 2}},
          {{5, 120, 40, true, 1}},
          {{3, 240, 80, false, 2}},
          {{3, 200, 80, false, 1},
           {3, 184, 80, false, 1},
           {3, 184, 80, false, 1},
           {3, 480, 112, true, 1},
           {3, 672, 112, true, 1}},
          {{5, 672, 160, true, 2}},
          {{5, 960, 160, false, 1},
           {5, 960, 160, true, 1},
           {5, 960, 160, false, 1},
           {5, 960, 160, true, 1}}};
}

std::vector<std::unique_ptr<Sequential>> make_stages(const Init& init) {
  std::vector<std::unique_ptr<Sequential>> stages;
  int64_t channels = kStemChannels;
  for (const std::vector<Block>& stage : stage_table()) {
    std::vector<std::unique_ptr<Module>> blocks;
    for (const Block& block : stage) {
      blocks.push_back(std::make_unique<GhostBottleneck>(
          init,
          GhostBlockOptions{.in_channels = channels,
                            .middle = block.middle,
                            .out_channels = block.out_channels,
                            .kernel = block.kernel,
                            .stride = block.stride,
                            .squeeze_excite = block.squeeze_excite}));
      channels = block.out_channels;
    }
    stages.push_back(std::make_unique<Sequential>(std::move(blocks)));
  }
  return stages;
}

}  // namespace

GhostNet::GhostNet(const Init& init, const GhostNetOptions& options)
    : conv_stem_(init, conv3x3(3, kStemChannels, 2)),
      bn1_(init, kStemChannels, {.activation = Activation::kRelu}),
      stages_(make_stages(init)),
      last_conv_(init, conv1x1(stage_table().back().back().out_channels, kLastChannels)),
      last_norm_(init, kLastChannels, {.activation = Activation::kRelu}),
      conv_head_(init, kLastChannels, kHidden),
      dropout_(options.dropout, 0),
      classifier_(init, kHidden, options.classes) {
  register_module("conv_stem", conv_stem_);
  register_module("bn1", bn1_);
  for (size_t i = 0; i < stages_.size(); ++i) {
    register_module(fmt::format("blocks.{}", i), *stages_[i]);
  }
  register_module("blocks.9.0.conv", last_conv_);
  register_module("blocks.9.0.bn1", last_norm_);
  register_module("conv_head", conv_head_);
  register_module("dropout", dropout_);  // has no state
  register_module("classifier", classifier_);
}

Var GhostNet::forward(const Var& x) {
  Var y = bn1_.forward(conv_stem_.to_norm(x));
  for (const std::unique_ptr<Sequential>& stage : stages_) y = stage->forward(y);
  y = last_norm_.forward(last_conv_.to_norm(y));
  y = relu(conv_head_.forward(global_avg_pool(y)));
  return classifier_.forward(dropout_.forward(y));
}

}  // namespace lockstep::nn
