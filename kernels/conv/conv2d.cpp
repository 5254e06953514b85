#include "kernels/conv/conv2d.h"

#include <fmt/core.h>

#include "kernels/conv/conv2d_cudnn.h"
#include "kernels/conv/convolution_problem.h"
#include "kernels/conv/winograd.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

// Two operations per tap of each output, including taps in the padding.
int64_t conv2d_flops(const Shape& weight, const Shape& out) {
  return 2 * out.numel() * weight.stride0();
}

}  // namespace

Shape conv2d_output_shape(const Shape& in, const Shape& weight, const Conv2dParams& params) {
  const auto fail = [&](std::string_view requirement) {
    throw ShapeError(fmt::format(
        "[conv2d] required: {}; in {}, weight {}", requirement, to_string(in), to_string(weight)));
  };
  if (in.rank() != 4 || weight.rank() != 4) fail("in (N,C,H,W) and weight (K,C/groups,R,S)");
  if (params.groups < 1 || weight[0] % params.groups != 0) fail("groups that divide K");
  if (in[1] != weight[1] * params.groups || weight.numel() == 0) {
    fail("as many channels in both, none empty");
  }
  if (params.stride_h < 1 || params.stride_w < 1) fail("stride >= 1");
  if (params.pad_h < 0 || params.pad_w < 0) fail("pad >= 0");
  const int64_t room_h = in[2] + int64_t{2} * params.pad_h - weight[2];
  const int64_t room_w = in[3] + int64_t{2} * params.pad_w - weight[3];
  if (room_h < 0 || room_w < 0) fail("a kernel no larger than the padded image");
  return {in[0], weight[0], room_h / params.stride_h + 1, room_w / params.stride_w + 1};
}

void conv2d_forward(Stream& stream, const Shards& shards, const Conv2dForwardArgs& args) {
  const OpCheck check("conv2d_forward", stream);
  const Tensor &in = args.in, &weight = args.weight, &bias = args.bias;
  check.floating("in", in);
  check.dtype("weight", weight, {in.dtype()});
  const Shape out_shape = conv2d_output_shape(in.shape(), weight.shape(), args.params);
  if (bias.defined()) check.like("bias", bias, {weight.shape()[0]}, Dtype::kF32);
  check.like("out", args.out, out_shape, in.dtype());
  check.covers(shards, in.shape()[0]);
  const ConvolutionProblem problem = problem_of(args);
  if (check.dry(conv2d_flops(weight.shape(), out_shape),
                bytes_of(in, weight, bias, args.out),
                problem.key())) {
    return;
  }
  LS_DISPATCH_CUDNN(conv2d_forward, problem, (in, weight, bias, args.out), (stream, shards, args))
  if (suits_winograd(stream, in.dtype(), in.shape(), weight.shape(), args.params)) {
    return winograd_forward(stream, shards, args);
  }
  LS_DISPATCH_ONEDNN(conv2d_forward, (stream, shards, args))
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
                bytes_of(grad_out, weight, grad_in),
                problem.key())) {
    return;
  }
  LS_DISPATCH_CUDNN(conv2d_backward_data,
                    problem,
                    (grad_out, weight, grad_in),
                    (stream, shards, grad_out, weight, params, grad_in))
  if (suits_winograd(stream, grad_in.dtype(), grad_in.shape(), weight.shape(), params)) {
    return winograd_backward_data(stream, shards, grad_out, weight, params, grad_in);
  }
  LS_DISPATCH_ONEDNN(conv2d_backward_data, (stream, shards, grad_out, weight, params, grad_in))
}

void conv2d_backward_weight(Stream& stream,
                            const Shards& shards,
                            const Conv2dBackwardWeightArgs& args) {
  const OpCheck check("conv2d_backward_weight", stream);
  const Tensor &in = args.in, &grad_out = args.grad_out;
  const Shape& weight = args.weight_shape;
  const Tensor grad_bias = args.bias_gradient();
  check.floating("in", in);
  const Shape out_shape = conv2d_output_shape(in.shape(), weight, args.params);
  check.like("grad_out", grad_out, out_shape, in.dtype());
  check.like("grad_weight", args.grad_weight, {shards.local(), weight.numel()}, Dtype::kF32);
  if (grad_bias.defined()) {
    check.like("grad_bias", grad_bias, {shards.local(), weight[0]}, Dtype::kF32);
  }
  check.covers(shards, out_shape[0]);
  const ConvolutionProblem problem = problem_of(args);
  if (check.dry(conv2d_flops(weight, out_shape),
                bytes_of(in, grad_out, args.grad_weight, grad_bias),
                problem.key())) {
    return;
  }
  LS_DISPATCH_CUDNN(
      conv2d_backward_weight, problem, (in, grad_out, args.grad_weight), (stream, shards, args))
  if (suits_winograd(stream, in.dtype(), in.shape(), weight, args.params)) {
    return winograd_backward_weight(stream, shards, args);
  }
  LS_DISPATCH_ONEDNN(conv2d_backward_weight, (stream, shards, args))
}

}  // namespace lockstep::kernels
