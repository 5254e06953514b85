#include "nn/layers.h"

#include <utility>

#include <fmt/core.h>

#include "core/error.h"
#include "nn/init.h"

namespace lockstep::nn {
namespace {

int64_t channels_of_group(const Conv2dOptions& options) {
  if (options.groups >= 1 && options.in_channels % options.groups == 0 &&
      options.out_channels % options.groups == 0) {
    return options.in_channels / options.groups;
  }
  throw ShapeError(fmt::format("[conv2d] {} groups of {} input and {} output channels",
                               options.groups,
                               options.in_channels,
                               options.out_channels),
                   "each group has as many channels as any other",
                   "a number of groups that divides both");
}

Tensor constant(const Init& init, int64_t size, float value) {
  Tensor tensor = Tensor::empty({size}, Dtype::kF32, init.device);
  fill(init, value, tensor);
  return tensor;
}

}  // namespace

NormInput ConvToNorm::to_norm(NormInput x, BatchNorm& norm) {
  Var normalized = norm.forward(x);
  x = {};
  NormInput out = to_norm(normalized);
  normalized.forget();
  return out;
}

Conv2d::Conv2d(const Init& init, const Conv2dOptions& options)
    : params_{options.stride, options.stride, options.pad, options.pad, options.groups} {
  const Shape shape{
      options.out_channels, channels_of_group(options), options.kernel, options.kernel};
  const int64_t fan_in = shape.stride0();
  weight_ = register_parameter("weight", default_weight(init, shape, fan_in));
  if (options.bias) {
    bias_ = register_parameter("bias", default_bias(init, options.out_channels, fan_in));
  }
}

Var Conv2d::forward(const Var& x) {
  return conv2d(x, weight_, bias_, params_);
}

NormInput Conv2d::to_norm(const Var& x) {
  return conv2d_to_norm(x, weight_, params_);
}

NormInput Conv2d::to_norm(NormInput x, BatchNorm& norm) {
  if (norm.training() && takes_norm(x, norm.state_, weight_, params_)) {
    norm.begin_step(x.value);
    return norm_conv2d(x, norm.state_, weight_, params_);
  }
  return ConvToNorm::to_norm(std::move(x), norm);
}

DepthwiseConv2d::DepthwiseConv2d(const Init& init, const DepthwiseConv2dOptions& options)
    : params_{options.stride, options.stride, options.kernel / 2, options.kernel / 2} {
  const Shape shape{options.channels, 1, options.kernel, options.kernel};
  weight_ = register_parameter("weight", default_weight(init, shape, shape.stride0()));
}

Var DepthwiseConv2d::forward(const Var& x) {
  return depthwise_conv2d(x, weight_, params_);
}

OnePixelConv2d::OnePixelConv2d(const Init& init, int64_t in_channels, int64_t out_channels) {
  weight_ = register_parameter(
      "weight", default_weight(init, {out_channels, in_channels, 1, 1}, in_channels));
  bias_ = register_parameter("bias", default_bias(init, out_channels, in_channels));
}

Var OnePixelConv2d::forward(const Var& x) {
  return linear(x, weight_, bias_);
}

BatchNorm::BatchNorm(const Init& init, int64_t channels, const BatchNormOptions& options) {
  state_.params = {.eps = options.eps, .activation = options.activation};
  state_.running.momentum = options.momentum;
  Tensor gain = constant(init, channels, 1);
  state_.weight = options.fixed_gain ? register_frozen("weight", std::move(gain))
                                     : register_norm_parameter("weight", std::move(gain));
  state_.bias = register_norm_parameter("bias", constant(init, channels, 0));
  state_.running.mean = register_buffer("running_mean", constant(init, channels, 0));
  state_.running.var = register_buffer("running_var", constant(init, channels, 1));
  num_batches_tracked_ = register_buffer("num_batches_tracked", Tensor::zeros({}, Dtype::kI64));
}

void BatchNorm::begin_step(const Var& x) {
  if (x.shards().micro_step == 0) count_step();
}

Var BatchNorm::forward(const NormInput& x) {
  if (!training()) return batch_norm_inference(x.value, state_);
  begin_step(x.value);
  return batch_norm(x, state_);
}

Forked BatchNorm::forward(const NormInput& x, const Var& residual) {
  if (!training()) {
    const Var value = batch_norm_inference(x.value, state_, residual);
    return {value, value};
  }
  begin_step(x.value);
  return batch_norm(x, state_, residual);
}

Var BatchNorm::before_activation(const NormInput& x) {
  begin_step(x.value);
  BatchNormState state = state_;
  state.params.activation = Activation::kNone;
  return batch_norm(x, state);
}

void convert_sync_batchnorm(Module& model) {
  model.apply([](Module& module) {
    if (auto* norm = dynamic_cast<BatchNorm*>(&module)) norm->set_groups(BatchNormGroups::kOne);
  });
}

MaxPool2d::MaxPool2d(int kernel, int stride, int pad)
    : params_{.kernel_h = kernel,
              .kernel_w = kernel,
              .stride_h = stride,
              .stride_w = stride,
              .pad_h = pad,
              .pad_w = pad} {}

Var MaxPool2d::forward(const Var& x) {
  return max_pool2d(x, params_);
}

Var Dropout::forward(const Var& x) {
  return training() && p_ > 0 ? dropout(x, p_, layer_) : x;
}

Linear::Linear(const Init& init, int64_t in_features, int64_t out_features, bool bias) {
  weight_ =
      register_parameter("weight", default_weight(init, {out_features, in_features}, in_features));
  if (bias) bias_ = register_parameter("bias", default_bias(init, out_features, in_features));
}

Linear::Linear(const Init& init, const Shape& in_image, int64_t out_features) {
  const Shape shape{out_features, in_image[0], in_image[1], in_image[2]};
  const Shape file_shape{out_features, in_image.numel()};
  weight_ =
      register_parameter("weight", default_weight(init, shape, in_image.numel()), &file_shape);
  bias_ = register_parameter("bias", default_bias(init, out_features, in_image.numel()));
}

Var Linear::forward(const Var& x) {
  return linear(x, weight_, bias_);
}

}  // namespace lockstep::nn
