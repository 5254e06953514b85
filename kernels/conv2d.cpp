#include "kernels/conv2d.h"

#include <fmt/core.h>

#include "kernels/conv2d_cudnn.h"
#include "kernels/convolution_problem.h"
#include "kernels/dispatch.h"
#include "kernels/op_check.h"

namespace lockstep::kernels {
namespace {

// Two for each tap of each output, taps in the padding included.
int64_t conv2d_flops(const Shape& weight, const Shape& out) {
  return 2 * out.numel() * weight.stride0();
}

}  // namespace

Shape conv2d_output_shape(const Shape& in, const Shape& weight, const Conv2dParams& params) {
  const auto fail = [&](std::string_view requirement) {
    throw ShapeError(fmt::format(
        "[conv2d] required: {}; in {}, weight {}", requirement, to_string(in), to_string(weight)));
  };
  if (in.rank() != 4 || weight.rank() != 4) fail("in (N,C,H,W) and weight (K,C,R,S)");
  if (in[1] != weight[1] || weight.numel() == 0) fail("as many channels in both, none empty");
  if (params.stride_h < 1 || params.stride_w < 1) fail("stride >= 1");
  if (params.pad_h < 0 || params.pad_w < 0) fail("pad >= 0");
  const int64_t room_h = in[2] + int64_t{2} * params.pad_h - weight[2];
  const int64_t room_w = in[3] + int64_t{2} * params.pad_w - weight[3];
  if (room_h < 0 || room_w < 0) fail("a kernel no larger than the padded image");
  return {in[0], weight[0], room_h / params.stride_h + 1, room_w / params.stride_w + 1};
}

void conv2d_forward(Stream& stream,
                    const Shards& shards,
                    const Tensor& in,
                    const Tensor& weight,
                    const Tensor& bias,
                    const Conv2dParams& params,
                    Tensor& out) {
  const OpCheck check("conv2d_forward", stream);
  check.floating("in", in);
  check.dtype("weight", weight, {in.dtype()});
  const Shape out_shape = conv2d_output_shape(in.shape(), weight.shape(), params);
  if (bias.defined()) check.like("bias", bias, {weight.shape()[0]}, Dtype::kF32);
  check.like("out", out, out_shape, in.dtype());
  check.covers(shards, in.shape()[0]);
  const ConvolutionProblem problem{.pass = ConvolutionPass::kForward,
                                   .dtype = in.dtype(),
                                   .in = in.shape(),
                                   .weight = weight.shape(),
                                   .params = params,
                                   .has_bias = bias.defined()};
  if (check.dry(conv2d_flops(weight.shape(), out_shape),
                static_cast<int64_t>(in.nbytes() + weight.nbytes() + bias.nbytes() + out.nbytes()),
                problem.key())) {
    return;
  }
  LS_DISPATCH_CUDNN(conv2d_forward, problem, (stream, shards, in, weight, bias, params, out))
  LS_DISPATCH_ONEDNN(conv2d_forward, (stream, shards, in, weight, bias, params, out))
}

void conv2d_backward_data(Stream& stream,
                          const Shards& shards,
                          const Tensor& grad_out,
                          const Tensor& weight,
                          const Conv2dParams& params,
                          Tensor& grad_in) {
  const OpCheck check("conv2d_backward_data", stream);
  check.floating("grad_in", grad_in);
  check.dtype("weight", weight, {grad_in.dtype()});
  const Shape out_shape = conv2d_output_shape(grad_in.shape(), weight.shape(), params);
  check.like("grad_out", grad_out, out_shape, grad_in.dtype());
  check.covers(shards, out_shape[0]);
  const ConvolutionProblem problem{.pass = ConvolutionPass::kBackwardData,
                                   .dtype = grad_in.dtype(),
                                   .in = grad_in.shape(),
                                   .weight = weight.shape(),
                                   .params = params};
  if (check.dry(conv2d_flops(weight.shape(), out_shape),
                static_cast<int64_t>(grad_out.nbytes() + weight.nbytes() + grad_in.nbytes()),
                problem.key())) {
    return;
  }
  LS_DISPATCH_CUDNN(
      conv2d_backward_data, problem, (stream, shards, grad_out, weight, params, grad_in))
  LS_DISPATCH_ONEDNN(conv2d_backward_data, (stream, shards, grad_out, weight, params, grad_in))
}

void conv2d_backward_weight(Stream& stream,
                            const Shards& shards,
                            const Tensor& in,
                            const Tensor& grad_out,
                            const Shape& weight_shape,
                            const Conv2dParams& params,
                            Tensor& grad_weight,
                            Tensor& grad_bias) {
  const OpCheck check("conv2d_backward_weight", stream);
  check.floating("in", in);
  const Shape out_shape = conv2d_output_shape(in.shape(), weight_shape, params);
  check.like("grad_out", grad_out, out_shape, in.dtype());
  check.like("grad_weight", grad_weight, {shards.local(), weight_shape.numel()}, Dtype::kF32);
  if (grad_bias.defined()) {
    check.like("grad_bias", grad_bias, {shards.local(), weight_shape[0]}, Dtype::kF32);
  }
  check.covers(shards, out_shape[0]);
  const ConvolutionProblem problem{.pass = ConvolutionPass::kBackwardWeight,
                                   .dtype = in.dtype(),
                                   .in = in.shape(),
                                   .weight = weight_shape,
                                   .params = params};
  if (check.dry(conv2d_flops(weight_shape, out_shape),
                static_cast<int64_t>(in.nbytes() + grad_out.nbytes() + grad_weight.nbytes() +
                                     grad_bias.nbytes()),
                problem.key())) {
    return;
  }
  LS_DISPATCH_CUDNN(conv2d_backward_weight,
                    problem,
                    (stream, shards, in, grad_out, weight_shape, params, grad_weight, grad_bias))
  LS_DISPATCH_ONEDNN(conv2d_backward_weight,
                     (stream, shards, in, grad_out, weight_shape, params, grad_weight, grad_bias))
}

}  // namespace lockstep::kernels
