#include "kernels/conv2d_fused.h"

#include "kernels/conv2d_cudnn.h"
#include "kernels/dispatch.h"
#include "kernels/op_check.h"

namespace lockstep::kernels {
namespace {

struct Choice final : Plan {};

PlanKey key_of(const ConvolutionProblem& form) {
  ConvolutionProblem any = form;
  any.in = {0, form.in[1], form.in[2], form.in[3]};
  PlanKey key = any.key();
  key.op = "choice of a fused convolution";
  return key;
}

struct FusionCheck : OpCheck {
  FusionCheck(std::string_view op,
              Stream& stream,
              const Shards& shards,
              const Tensor& in,
              const Tensor& affine)
      : OpCheck(op, stream) {
    require(stream.device() == Device::kCuda, "a CUDA stream");
    floating("in", in);
    rank("in", in, 4);
    covers(shards, in.shape()[0]);
    if (affine.defined()) like("affine", affine, {2, shards.local(), in.shape()[1]}, in.dtype());
  }
};

}  // namespace

std::vector<ConvolutionProblem> fused_forms(const ConvolutionProblem& forward) {
  constexpr int64_t kMultiple = 8;  // channels of 16 bytes
  if (forward.pass != ConvolutionPass::kForward || forward.dtype != Dtype::kF16 ||
      forward.has_bias || forward.in[1] % kMultiple != 0 || forward.weight[0] % kMultiple != 0) {
    return {};
  }
  std::vector<ConvolutionProblem> forms(3, forward);
  forms[0].gives_sums = true;
  forms[1].pass = ConvolutionPass::kBackwardWeight;
  forms[1].norms_in = true;
  forms[2].gives_sums = forms[2].norms_in = true;
  return forms;
}

void choose_form(Stream& stream, const ConvolutionProblem& form) {
  stream.plan<Choice>(key_of(form), [] { return std::make_unique<Choice>(); });
}

bool is_chosen(Stream& stream, const ConvolutionProblem& form) {
  return stream.find_plan<Choice>(key_of(form)) != nullptr;
}

void conv2d_fused_forward(Stream& stream,
                          const Shards& shards,
                          const Tensor& in,
                          const Tensor& affine,
                          const Tensor& weight,
                          const Conv2dParams& params,
                          Tensor& out,
                          Tensor& sums) {
  const FusionCheck check("conv2d_fused_forward", stream, shards, in, affine);
  check.dtype("weight", weight, {in.dtype()});
  const Shape out_shape = conv2d_output_shape(in.shape(), weight.shape(), params);
  check.like("out", out, out_shape, in.dtype());
  check.like("sums", sums, {2, shards.local(), out_shape[1]}, Dtype::kF32);
  [[maybe_unused]] const ConvolutionProblem problem{.pass = ConvolutionPass::kForward,
                                                    .dtype = in.dtype(),
                                                    .in = in.shape(),
                                                    .weight = weight.shape(),
                                                    .params = params,
                                                    .gives_sums = true,
                                                    .norms_in = affine.defined()};
  LS_DISPATCH_CUDNN(
      conv2d_fused_forward, problem, (stream, shards, in, affine, weight, params, out, sums))
  LS_DISPATCH_CUDA(conv2d_fused_forward, (stream, shards, in, affine, weight, params, out, sums))
}

void conv2d_fused_backward_weight(Stream& stream,
                                  const Shards& shards,
                                  const Tensor& in,
                                  const Tensor& affine,
                                  const Tensor& grad_out,
                                  const Shape& weight_shape,
                                  const Conv2dParams& params,
                                  Tensor& grad_weight) {
  const FusionCheck check("conv2d_fused_backward_weight", stream, shards, in, affine);
  check.require(affine.defined(), "affine: without it, it is conv2d_backward_weight");
  check.like(
      "grad_out", grad_out, conv2d_output_shape(in.shape(), weight_shape, params), in.dtype());
  check.like("grad_weight", grad_weight, {shards.local(), weight_shape.numel()}, Dtype::kF32);
  [[maybe_unused]] const ConvolutionProblem problem{.pass = ConvolutionPass::kBackwardWeight,
                                                    .dtype = in.dtype(),
                                                    .in = in.shape(),
                                                    .weight = weight_shape,
                                                    .params = params,
                                                    .norms_in = true};
  LS_DISPATCH_CUDNN(conv2d_fused_backward_weight,
                    problem,
                    (stream, shards, in, affine, grad_out, weight_shape, params, grad_weight))
  LS_DISPATCH_CUDA(conv2d_fused_backward_weight,
                   (stream, shards, in, affine, grad_out, weight_shape, params, grad_weight))
}

}  // namespace lockstep::kernels
