#include "kernels/conv/depthwise_conv2d.h"

#include <fmt/core.h>

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kMaxTaps = 1024;

// Two operations per tap of each output, including taps in the padding.
int64_t depthwise_conv2d_flops(const Shape& weight, const Shape& out) {
  return 2 * out.numel() * weight.stride0();
}

}  // namespace

Shape depthwise_conv2d_output_shape(const Shape& in,
                                    const Shape& weight,
                                    const Conv2dParams& params) {
  const auto require = [&](bool ok, std::string_view requirement) {
    if (ok) return;
    throw ShapeError(fmt::format("[depthwise_conv2d] required: {}; in {}, weight {}",
                                 requirement,
                                 to_string(in),
                                 to_string(weight)));
  };
  require(in.rank() == 4 && weight.rank() == 4 && weight[1] == 1,
          "in (N,C,H,W) and weight (C,1,R,S)");
  require(in[1] == weight[0], "as many channels in both");
  require(weight.stride0() >= 1 && weight.stride0() <= kMaxTaps, "1 to 1024 taps");
  require(params.stride_h >= 1 && params.stride_w >= 1, "stride >= 1");
  require(params.pad_h >= 0 && params.pad_w >= 0, "pad >= 0");
  const int64_t room_h = in[2] + int64_t{2} * params.pad_h - weight[2];
  const int64_t room_w = in[3] + int64_t{2} * params.pad_w - weight[3];
  require(room_h >= 0 && room_w >= 0, "a kernel no larger than the padded image");
  return {in[0], in[1], room_h / params.stride_h + 1, room_w / params.stride_w + 1};
}

void depthwise_conv2d_forward(Stream& stream,
                              const Shards& shards,
                              const Tensor& in,
                              const Tensor& weight,
                              const Conv2dParams& params,
                              Tensor& out) {
  const OpCheck check("depthwise_conv2d_forward", stream);
  check.floating("in", in);
  const Shape out_shape = depthwise_conv2d_output_shape(in.shape(), weight.shape(), params);
  check.dtype("weight", weight, {in.dtype()});
  check.like("out", out, out_shape, in.dtype());
  check.covers(shards, in.shape()[0]);
  if (check.dry(depthwise_conv2d_flops(weight.shape(), out_shape), bytes_of(in, weight, out))) {
    return;
  }
  LS_DISPATCH(depthwise_conv2d_forward, (stream, shards, in, weight, params, out))
}

void depthwise_conv2d_backward_data(Stream& stream,
                                    const Shards& shards,
                                    const Tensor& grad_out,
                                    const Tensor& weight,
                                    const Conv2dParams& params,
                                    Tensor& grad_in) {
  const OpCheck check("depthwise_conv2d_backward_data", stream);
  check.floating("grad_in", grad_in);
  const Shape out_shape = depthwise_conv2d_output_shape(grad_in.shape(), weight.shape(), params);
  check.dtype("weight", weight, {grad_in.dtype()});
  check.like("grad_out", grad_out, out_shape, grad_in.dtype());
  check.covers(shards, out_shape[0]);
  if (check.dry(depthwise_conv2d_flops(weight.shape(), out_shape),
                bytes_of(grad_out, weight, grad_in))) {
    return;
  }
  LS_DISPATCH(depthwise_conv2d_backward_data, (stream, shards, grad_out, weight, params, grad_in))
}

void depthwise_conv2d_backward_weight(Stream& stream,
                                      const Shards& shards,
                                      const Conv2dBackwardWeightArgs& args) {
  const OpCheck check("depthwise_conv2d_backward_weight", stream);
  const Tensor &in = args.in, &grad_out = args.grad_out, &grad_weight = args.grad_weight;
  const Shape& weight = args.weight_shape;
  check.floating("in", in);
  const Shape out_shape = depthwise_conv2d_output_shape(in.shape(), weight, args.params);
  check.like("grad_out", grad_out, out_shape, in.dtype());
  check.like("grad_weight", grad_weight, {shards.local(), weight.numel()}, Dtype::kF32);
  check.require(!args.bias_gradient().defined(), "no grad_bias");
  check.covers(shards, out_shape[0]);
  if (check.dry(depthwise_conv2d_flops(weight, out_shape), bytes_of(in, grad_out, grad_weight))) {
    return;
  }
  LS_DISPATCH(depthwise_conv2d_backward_weight, (stream, shards, args))
}

}  // namespace lockstep::kernels
