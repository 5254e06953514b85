#include <utility>

#include "kernels/conv/conv2d_fused.h"
#include "kernels/conv/depthwise_conv2d.h"
#include "kernels/linear/add_bias.h"
#include "nn/autocast.h"
#include "nn/conv_norm.h"
#include "nn/functional.h"
#include "nn/functional/normalization.h"

namespace lockstep::nn {
namespace {

using kernels::Conv2dParams;

// Tells whether a training step's convolution is fused with the batch norm after it and, if
// norms_in, with the one before it. Under autocast a cast separates them.
bool is_chosen(const Var& x, const Tensor& kernel, const Conv2dParams& params, bool norms_in) {
  const Batch& batch = x.batch();
  return batch.recording && !batch.precision.autocast && batch.shards.per_group() == 1 &&
         kernels::is_chosen(x.stream(),
                            {.dtype = x.dtype(),
                             .in = x.shape(),
                             .weight = kernel.shape(),
                             .params = params,
                             .gives_sums = true,
                             .norms_in = norms_in});
}

Tensor empty_result(const Var& x, const Tensor& kernel, const Conv2dParams& params) {
  const Shape shape = kernels::conv2d_output_shape(x.shape(), kernel.shape(), params);
  return Tensor::empty(shape, x.dtype(), x.stream().device());
}

Tensor empty_sums(const Var& x, const Tensor& kernel) {
  const Shape shape{2, x.shards().local(), kernel.shape()[0]};
  return Tensor::empty(shape, Dtype::kF32, x.stream().device());
}

Var record_conv2d(const Tensor& out,
                  const Var& x,
                  const Var& weight,
                  const Var& bias,
                  const Conv2dParams& params) {
  const auto backward = [=, kernel = weight.as(x.dtype())](
                            Stream& s, const Tensor& grad_out, Grads& grads) {
    if (grads.wants(0)) {
      kernels::conv2d_backward_data(s, x.shards(), grad_out, kernel, params, grads.overwrite(0));
    }
    if (!grads.wants(1)) {
      if (grads.wants(2)) kernels::add_bias_backward(s, x.shards(), grad_out, grads.overwrite(2));
      return;
    }
    kernels::conv2d_backward_weight(s,
                                    x.shards(),
                                    {.in = x.value(),
                                     .grad_out = grad_out,
                                     .weight_shape = kernel.shape(),
                                     .params = params,
                                     .grad_weight = grads.overwrite(1),
                                     .grad_bias = grads.wants(2) ? &grads.overwrite(2) : nullptr});
  };
  return record("conv2d", out, {x, weight, bias}, backward);
}

}  // namespace

Var conv2d(const Var& input, const Var& weight, const Var& bias, const Conv2dParams& params) {
  const Var x = cast_for_products(input);
  const Tensor& kernel = weight_for(x, weight);
  Tensor out = empty_result(x, kernel, params);
  const Tensor offset = bias.defined() ? bias.value() : Tensor();
  kernels::conv2d_forward(
      x.stream(),
      x.shards(),
      {.in = x.value(), .weight = kernel, .bias = offset, .params = params, .out = out});
  return record_conv2d(out, x, weight, bias, params);
}

NormInput conv2d_to_norm(const Var& x, const Var& weight, const Conv2dParams& params) {
  const Tensor& kernel = weight.value();
  if (!is_chosen(x, kernel, params, false)) return {conv2d(x, weight, {}, params)};
  const Tensor& narrow = weight_for(x, weight);
  Tensor out = empty_result(x, narrow, params);
  Tensor sums = empty_sums(x, kernel);
  kernels::conv2d_fused_forward(x.stream(),
                                x.shards(),
                                {.in = x.value(), .weight = narrow, .params = params, .out = out},
                                {},
                                sums);
  return {record_conv2d(out, x, weight, {}, params), sums};
}

bool takes_norm(const NormInput& x,
                const BatchNormState& norm,
                const Var& weight,
                const Conv2dParams& params) {
  return x.sums.defined() && norm.params.activation == Activation::kRelu &&
         norm.groups == BatchNormGroups::kPerGroup &&
         is_chosen(x.value, weight.value(), params, true);
}

NormInput norm_conv2d(const NormInput& input,
                      BatchNormState& norm,
                      const Var& weight,
                      const Conv2dParams& params) {
  const Var& x = input.value;
  Stream& stream = x.stream();
  const Tensor& kernel = weight_for(x, weight);
  // A listener must see every value and gradient, so the normalized value is computed, too. The
  // fused convolution gives the same bits.
  const bool watched = x.batch().is_watched();
  const Var normalized = watched ? batch_norm(input, norm) : Var();
  Normalization normalization(x, norm);
  const Tensor affine = normalization.affine(stream, input.sums, watched ? nullptr : &norm.running);
  Tensor out = empty_result(x, kernel, params);
  Tensor sums = empty_sums(x, kernel);
  kernels::conv2d_fused_forward(
      stream,
      x.shards(),
      {.in = normalization.in(), .weight = kernel, .params = params, .out = out},
      affine,
      sums);

  const auto data = [=](Stream& s, const Tensor& grad_out, Tensor& grad) {
    kernels::conv2d_backward_data(s, normalization.shards(), grad_out, kernel, params, grad);
  };
  const auto leaves = [=](Stream& s, const Tensor& grad_out, Tensor& grad) {
    kernels::conv2d_fused_backward_weight(s,
                                          normalization.shards(),
                                          {.in = normalization.in(),
                                           .grad_out = grad_out,
                                           .weight_shape = kernel.shape(),
                                           .params = params,
                                           .grad_weight = grad},
                                          affine);
  };
  if (watched) {
    const auto backward = [=](Stream& s, const Tensor& grad_out, Grads& grads) {
      if (grads.wants(0)) data(s, grad_out, grads.overwrite(0));
      if (grads.wants(1)) leaves(s, grad_out, grads.overwrite(1));
    };
    return {record("conv2d", out, {normalized, weight}, backward), sums};
  }
  const auto backward = [=](Stream& s, Tensor& grad_out, Grads& grads) {
    Tensor grad = Tensor::empty(normalization.in().shape(), normalization.in().dtype(), s.device());
    data(s, grad_out, grad);
    if (grads.wants(4)) leaves(s, grad_out, grads.overwrite(4));
    grad_out = Tensor();
    normalization.backward(s, {}, {}, grad, grads);
  };
  return {record("norm_conv2d", out, {x, norm.weight, norm.bias, {}, weight}, backward), sums};
}

Var depthwise_conv2d(const Var& input, const Var& weight, const kernels::Conv2dParams& params) {
  const Var x = cast_for_products(input);
  Stream& stream = x.stream();
  const Tensor& kernel = weight_for(x, weight);
  const Shape shape = kernels::depthwise_conv2d_output_shape(x.shape(), kernel.shape(), params);
  Tensor out = Tensor::empty(shape, x.dtype(), stream.device());
  kernels::depthwise_conv2d_forward(stream, x.shards(), x.value(), kernel, params, out);

  return record(
      "depthwise_conv2d", out, {x, weight}, [=](Stream& s, const Tensor& grad_out, Grads& grads) {
        if (grads.wants(0)) {
          kernels::depthwise_conv2d_backward_data(
              s, x.shards(), grad_out, kernel, params, grads.overwrite(0));
        }
        if (grads.wants(1)) {
          kernels::depthwise_conv2d_backward_weight(s,
                                                    x.shards(),
                                                    {.in = x.value(),
                                                     .grad_out = grad_out,
                                                     .weight_shape = kernel.shape(),
                                                     .params = params,
                                                     .grad_weight = grads.overwrite(1)});
        }
      });
}

}  // namespace lockstep::nn
