#include "nn/airbench.h"

#include <fmt/core.h>

#include "core/check.h"
#include "nn/conv_options.h"
#include "nn/init.h"

namespace lockstep::nn {
namespace {

constexpr int64_t kColors = 3;
constexpr int kPatch = 2;  // pixels, square
constexpr float kLogitScale = 1.0F / 9;

BatchNormOptions norm_options(const AirbenchOptions& options, Activation activation) {
  return {.activation = activation,
          .eps = 1e-12F,
          .momentum = options.norm_momentum,
          .fixed_gain = true};
}

std::vector<std::unique_ptr<AirbenchGroup>> make_groups(const Init& init,
                                                        int64_t in_channels,
                                                        const AirbenchOptions& options) {
  std::vector<std::unique_ptr<AirbenchGroup>> groups;
  for (const int64_t width : options.widths) {
    groups.push_back(std::make_unique<AirbenchGroup>(init, in_channels, width, options));
    in_channels = width;
  }
  return groups;
}

}  // namespace

AirbenchOptions airbench_options(int accuracy) {
  if (accuracy == 94) return {};
  if (accuracy == 95) return {.widths = {128, 384, 384}};
  LS_CHECK(accuracy == 96, "[airbench_options] accuracy: got {}", accuracy);
  return {.widths = {128, 384, 512}, .residual = true, .norm_momentum = 0.1F};
}

AirbenchGroup::AirbenchGroup(const Init& init,
                             int64_t in_channels,
                             int64_t out_channels,
                             const AirbenchOptions& options)
    : conv1_(init, conv3x3(in_channels, out_channels)),
      pool_(2),
      norm1_(init, out_channels, norm_options(options, Activation::kGelu)),
      conv2_(init, conv3x3(out_channels, out_channels)),
      norm2_(init, out_channels, norm_options(options, Activation::kGelu)) {
  register_module("conv1", conv1_);
  register_module("norm1", norm1_);
  register_module("conv2", conv2_);
  register_module("norm2", norm2_);
  if (options.residual) {
    conv3_ = std::make_unique<Conv2d>(init, conv3x3(out_channels, out_channels));
    norm3_ =
        std::make_unique<BatchNorm>(init, out_channels, norm_options(options, Activation::kNone));
    register_module("conv3", *conv3_);
    register_module("norm3", *norm3_);
  }
  for (const NamedParameter& parameter : named_parameters()) {
    Tensor value = parameter.var.value();
    if (value.shape().rank() == 4) dirac(init, value);
  }
}

Var AirbenchGroup::forward(const Var& x) {
  const Var half = norm1_.forward(pool_.forward(conv1_.forward(x)));
  Var y = norm2_.forward(conv2_.to_norm(half));
  if (conv3_ == nullptr) return y;
  return gelu(norm3_->forward(conv3_->to_norm(y), half).value);
}

Airbench::Airbench(const Init& init, const AirbenchOptions& options)
    : whitening_(init, kColors, kPatch),
      groups_(make_groups(init, whitening_.filters(), options)),
      pool_(3),
      linear_(init, options.widths.back(), options.classes, false) {
  register_module("0", whitening_);
  for (size_t i = 0; i < groups_.size(); ++i) {
    register_module(fmt::format("{}", i + 2), *groups_[i]);
  }
  register_module("7", linear_);
}

Var Airbench::forward(const Var& x) {
  Var y = gelu(whitening_.forward(x));
  for (const std::unique_ptr<AirbenchGroup>& group : groups_) y = group->forward(y);
  return scale(linear_.forward(pool_.forward(y)), kLogitScale);
}

}  // namespace lockstep::nn
