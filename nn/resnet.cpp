#include "nn/resnet.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "core/check.h"
#include "core/error.h"
#include "nn/init.h"

namespace lockstep::nn {
namespace {

constexpr int64_t kStemChannels = 64;

struct Architecture {
  int depth = 0;
  bool bottleneck = false;
  std::array<int, 4> blocks{};

  int64_t out_channels() const {
    return 8 * kStemChannels * (bottleneck ? Bottleneck::kExpansion : BasicBlock::kExpansion);
  }
};

constexpr std::array<Architecture, 5> kArchitectures = {{{18, false, {2, 2, 2, 2}},
                                                         {34, false, {3, 4, 6, 3}},
                                                         {50, true, {3, 4, 6, 3}},
                                                         {101, true, {3, 4, 23, 3}},
                                                         {152, true, {3, 8, 36, 3}}}};

const Architecture& architecture(int depth) {
  const auto* found = std::ranges::find(kArchitectures, depth, &Architecture::depth);
  LS_CHECK(found != kArchitectures.end(), "[ResNet] depth: got {}", depth);
  return *found;
}

Conv2dOptions stem(bool cifar) {
  return conv_before_norm(3, kStemChannels, cifar ? 3 : 7, cifar ? 1 : 2);
}

// The shortcut is built before its block, so that weights are drawn in torchvision's order.
template <class Block>
std::unique_ptr<ResidualBlock> make_block(const Init& init, const BlockOptions& options) {
  const int64_t out_channels = options.planes * Block::kExpansion;
  std::unique_ptr<Module> shortcut;
  if (options.stride != 1 || options.in_channels != out_channels) {
    shortcut = std::make_unique<ProjectionShortcut>(
        init, options.in_channels, out_channels, options.stride, options.blur_pool);
  }
  return std::make_unique<Block>(init, options, std::move(shortcut));
}

template <class Block>
std::vector<std::unique_ptr<ResidualStage>> make_stages(const Init& init,
                                                        const Architecture& network,
                                                        const ResNetOptions& options) {
  std::vector<std::unique_ptr<ResidualStage>> stages;
  int64_t channels = kStemChannels;
  int64_t planes = kStemChannels;
  int64_t number = 0;
  const int64_t block_count =
      std::accumulate(network.blocks.begin(), network.blocks.end(), int64_t{0});
  for (const int depth : network.blocks) {
    std::vector<std::unique_ptr<ResidualBlock>> blocks;
    for (int b = 0; b < depth; ++b) {
      const int stride = b == 0 && !stages.empty() ? 2 : 1;
      blocks.push_back(
          make_block<Block>(init,
                            {.in_channels = channels,
                             .planes = planes,
                             .stride = stride,
                             .groups = options.groups,
                             .group_width = options.group_width,
                             .squeeze_excite = options.squeeze_excite,
                             .blur_pool = options.blur_pool,
                             .drop_path = drop_path_of(options.drop_path, number++, block_count)}));
      channels = planes * Block::kExpansion;
    }
    stages.push_back(std::make_unique<ResidualStage>(std::move(blocks)));
    planes *= 2;
  }
  return stages;
}

std::vector<std::unique_ptr<ResidualStage>> make_stages(const Init& init,
                                                        int depth,
                                                        const ResNetOptions& options) {
  const Architecture& network = architecture(depth);
  LS_CHECK(network.bottleneck || (options.groups == 1 && !options.squeeze_excite),
           "[ResNet] depth {} has no groups and no squeeze-and-excitation",
           depth);
  return network.bottleneck ? make_stages<Bottleneck>(init, network, options)
                            : make_stages<BasicBlock>(init, network, options);
}

}  // namespace

ResNet::ResNet(const Init& init, int depth, const ResNetOptions& options)
    : conv1_(init, stem(options.cifar_stem)),
      bn1_(init, kStemChannels, {.activation = Activation::kRelu}),
      pool_(options.cifar_stem ? nullptr : std::make_unique<MaxPool2d>(3, 2, 1)),
      stages_(make_stages(init, depth, options)),
      fc_(init, architecture(depth).out_channels(), options.classes) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  for (size_t i = 0; i < stages_.size(); ++i) {
    register_module(fmt::format("layer{}", i + 1), *stages_[i]);
  }
  register_module("fc", fc_);

  const char* last_norm = architecture(depth).bottleneck ? ".bn3.weight" : ".bn2.weight";
  for (const NamedParameter& parameter : named_parameters()) {
    Tensor value = parameter.var.value();
    if (value.shape().rank() == 4) kaiming_normal(init, Fan::kOut, value);
    if (options.zero_init_residual && parameter.name.ends_with(last_norm)) fill(init, 0, value);
  }
}

Var ResNet::forward(const Var& x) {
  Forked y = unforked(bn1_.forward(conv1_.to_norm(x)));
  if (pool_) y = unforked(pool_->forward(y.value));
  for (const std::unique_ptr<ResidualStage>& stage : stages_) y = stage->forward(y);
  return fc_.forward(global_avg_pool(y.value));
}

}  // namespace lockstep::nn
