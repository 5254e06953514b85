// CifarResNet of eight layers with half its channels: emulated threads are slow, and most of them
// are for weights.
#pragma once

#include <memory>
#include <vector>

#include "nn/init.h"
#include "nn/layers.h"
#include "nn/residual_block.h"

namespace lockstep::testing {

class TinyResNet : public nn::Module {
 public:
  explicit TinyResNet(const nn::Init& init)
      : conv1_(init,
               {.in_channels = 3,
                .out_channels = kStem,
                .kernel = 3,
                .stride = 1,
                .pad = 1,
                .bias = false}),
        bn1_(init, kStem, {.activation = nn::Activation::kRelu}),
        blocks_(make_blocks(init)),
        linear_(init, 4 * kStem, 10) {
    register_module("conv1", conv1_);
    register_module("bn1", bn1_);
    register_module("blocks", blocks_);
    register_module("linear", linear_);
  }

  Var forward(const Var& x) override {
    const nn::Forked stem = nn::unforked(bn1_.forward(conv1_.to_norm(x)));
    return linear_.forward(nn::global_avg_pool(blocks_.forward(stem).value));
  }

 private:
  static constexpr int64_t kStem = 8;

  static std::vector<std::unique_ptr<nn::ResidualBlock>> make_blocks(const nn::Init& init) {
    std::vector<std::unique_ptr<nn::ResidualBlock>> blocks;
    int64_t channels = kStem;
    for (const int64_t planes : {kStem, 2 * kStem, 4 * kStem}) {
      std::unique_ptr<nn::Module> shortcut;
      if (planes != channels) shortcut = std::make_unique<nn::PaddingShortcut>(planes);
      const nn::BlockOptions options = {channels, planes, planes == channels ? 1 : 2};
      blocks.push_back(std::make_unique<nn::BasicBlock>(init, options, std::move(shortcut)));
      channels = planes;
    }
    return blocks;
  }

  nn::Conv2d conv1_;
  nn::BatchNorm bn1_;
  nn::ResidualStage blocks_;
  nn::Linear linear_;
};

}  // namespace lockstep::testing
