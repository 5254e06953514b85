#include "nn/ghost_block.h"

#include "core/check.h"
#include "core/error.h"
#include "nn/conv_options.h"

namespace lockstep::nn {
namespace {

SqueezeExciteOptions squeeze_options(int64_t channels) {
  return {.channels = channels,
          .reduced = nearest_multiple(0.25 * static_cast<double>(channels), 4, 0.9),
          .gate = kernels::GateForm::kHardSigmoid,
          .reduce_name = "conv_reduce",
          .expand_name = "conv_expand"};
}

class DepthwiseShortcut : public Module {
 public:
  DepthwiseShortcut(const Init& init, const GhostBlockOptions& options)
      : depthwise_(init, {options.in_channels, options.kernel, options.stride}),
        depthwise_norm_(init, options.in_channels),
        pointwise_(init, conv1x1(options.in_channels, options.out_channels)),
        pointwise_norm_(init, options.out_channels) {
    register_module("0", depthwise_);
    register_module("1", depthwise_norm_);
    register_module("2", pointwise_);
    register_module("3", pointwise_norm_);
  }

  Var forward(const Var& x) override {
    return pointwise_norm_.forward(pointwise_.to_norm({depthwise_.forward(x)}, depthwise_norm_));
  }

 private:
  DepthwiseConv2d depthwise_;
  BatchNorm depthwise_norm_;
  Conv2d pointwise_;
  BatchNorm pointwise_norm_;
};

}  // namespace

GhostModule::GhostModule(const Init& init,
                         int64_t in_channels,
                         int64_t out_channels,
                         Activation activation)
    : primary_(init, conv1x1(in_channels, out_channels / 2)),
      primary_norm_(init, out_channels / 2, {.activation = activation}),
      cheap_(init, {.channels = out_channels / 2}),
      cheap_norm_(init, out_channels / 2, {.activation = activation}) {
  LS_CHECK(out_channels % 2 == 0, "[GhostModule] out_channels: got {}", out_channels);
  register_module("primary_conv.0", primary_);
  register_module("primary_conv.1", primary_norm_);
  register_module("cheap_operation.0", cheap_);
  register_module("cheap_operation.1", cheap_norm_);
}

Var GhostModule::forward(const Var& x) {
  Var half = primary_norm_.forward(primary_.to_norm(x));
  const Var other_half = cheap_norm_.forward(cheap_.forward(half));
  const Var both = concat_channels(half, other_half);
  half.forget();
  return both;
}

GhostBottleneck::GhostBottleneck(const Init& init, const GhostBlockOptions& options)
    : ghost1_(init, options.in_channels, options.middle, Activation::kRelu),
      conv_dw_(
          options.stride == 1
              ? nullptr
              : std::make_unique<DepthwiseConv2d>(
                    init, DepthwiseConv2dOptions{options.middle, options.kernel, options.stride})),
      bn_dw_(options.stride == 1 ? nullptr : std::make_unique<BatchNorm>(init, options.middle)),
      se_(options.squeeze_excite
              ? std::make_unique<SqueezeExcite>(init, squeeze_options(options.middle))
              : nullptr),
      ghost2_(init, options.middle, options.out_channels, Activation::kNone) {
  register_module("ghost1", ghost1_);
  if (conv_dw_) {
    register_module("conv_dw", *conv_dw_);
    register_module("bn_dw", *bn_dw_);
  }
  if (se_) register_module("se", *se_);
  register_module("ghost2", ghost2_);
  if (options.stride == 1 && options.in_channels == options.out_channels) return;
  shortcut_ = std::make_unique<DepthwiseShortcut>(init, options);
  register_module("shortcut", *shortcut_);
}

Var GhostBottleneck::forward(const Var& x) {
  Var y = ghost1_.forward(x);
  if (conv_dw_) y = bn_dw_->forward(conv_dw_->forward(y));
  if (se_) y = se_->forward(y);
  return add(ghost2_.forward(y), shortcut_ ? shortcut_->forward(x) : x);
}

}  // namespace lockstep::nn
