#include "nn/cifar_resnet.h"

#include <utility>

#include <fmt/core.h>

#include "core/check.h"
#include "core/error.h"
#include "nn/conv_options.h"
#include "nn/init.h"

namespace lockstep::nn {
namespace {

constexpr int64_t kStemChannels = 16;
constexpr int64_t kOutChannels = 64;

std::unique_ptr<ResidualBlock> make_block(const Init& init, const BlockOptions& options) {
  std::unique_ptr<Module> shortcut;
  if (options.in_channels != options.planes) {
    shortcut = std::make_unique<PaddingShortcut>(options.planes);
  }
  return std::make_unique<BasicBlock>(init, options, std::move(shortcut));
}

std::vector<std::unique_ptr<ResidualStage>> make_stages(const Init& init,
                                                        int depth,
                                                        double drop_path) {
  LS_CHECK(depth >= 8 && depth % 6 == 2, "[CifarResNet] depth: got {}, expected 6 n + 2", depth);
  std::vector<std::unique_ptr<ResidualStage>> stages;
  const int64_t block_count = int64_t{3} * (depth / 6);
  int64_t number = 0;
  int64_t channels = kStemChannels;
  for (int64_t planes = kStemChannels; planes <= kOutChannels; planes *= 2) {
    std::vector<std::unique_ptr<ResidualBlock>> blocks;
    for (int b = 0; b < depth / 6; ++b) {
      const int stride = channels == planes ? 1 : 2;
      blocks.push_back(make_block(init,
                                  {.in_channels = channels,
                                   .planes = planes,
                                   .stride = stride,
                                   .drop_path = drop_path_of(drop_path, number++, block_count)}));
      channels = planes;
    }
    stages.push_back(std::make_unique<ResidualStage>(std::move(blocks)));
  }
  return stages;
}

}  // namespace

CifarResNet::CifarResNet(const Init& init, int depth, int64_t classes, double drop_path)
    : conv1_(init, conv3x3(3, kStemChannels)),
      bn1_(init, kStemChannels, {.activation = Activation::kRelu}),
      stages_(make_stages(init, depth, drop_path)),
      linear_(init, kOutChannels, classes) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  for (size_t i = 0; i < stages_.size(); ++i) {
    register_module(fmt::format("layer{}", i + 1), *stages_[i]);
  }
  register_module("linear", linear_);
  for (const NamedParameter& parameter : named_parameters()) {
    Tensor value = parameter.var.value();
    if (value.shape().rank() >= 2) kaiming_normal(init, Fan::kIn, value);
  }
}

Var CifarResNet::forward(const Var& x) {
  Forked y = unforked(bn1_.forward(conv1_.to_norm(x)));
  for (const std::unique_ptr<ResidualStage>& stage : stages_) y = stage->forward(y);
  return linear_.forward(global_avg_pool(y.value));
}

}  // namespace lockstep::nn
