#include "kernels/conv/conv2d_fused.h"

#include "kernels/conv/conv2d_cudnn.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

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
    on(Device::kCuda);
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
      forward.has_bias || forward.params.groups > 1 || forward.in[1] % kMultiple != 0 ||
      forward.weight[0] % kMultiple != 0) {
    return {};
  }
  std::vector<ConvolutionProblem> forms(3, forward);
  forms[0].gives_sums = true;
  forms[1].pass = ConvolutionPass::kBackwardWeight;
  forms[1].norms_in = true;
  forms[2].gives_sums = forms[2].norms_in = true;
  return forms;
}

ConvolutionProblem fused(ConvolutionProblem call, const Tensor& affine) {
  call.gives_sums = call.pass == ConvolutionPass::kForward;
  call.norms_in = affine.defined();
  return call;
}

void choose_form(Stream& stream, const ConvolutionProblem& form) {
  stream.choose(key_of(form));
}

bool is_chosen(Stream& stream, const ConvolutionProblem& form) {
  return stream.is_chosen(key_of(form));
}

void conv2d_fused_forward(Stream& stream,
                          const Shards& shards,
                          const Conv2dForwardArgs& args,
                          const Tensor& affine,
                          Tensor& sums) {
  const Tensor& in = args.in;
  const FusionCheck check("conv2d_fused_forward", stream, shards, in, affine);
  check.dtype("weight", args.weight, {in.dtype()});
  check.require(!args.bias.defined(), "no bias");
  const Shape out_shape = conv2d_output_shape(in.shape(), args.weight.shape(), args.params);
  check.like("out", args.out, out_shape, in.dtype());
  check.like("sums", sums, {2, shards.local(), out_shape[1]}, Dtype::kF32);
  LS_DISPATCH_CUDNN(conv2d_fused_forward,
                    fused(problem_of(args), affine),
                    (in, args.weight, args.out, affine, sums),
                    (stream, shards, args, affine, sums))
  LS_DISPATCH_CUDA(conv2d_fused_forward, (stream, shards, args, affine, sums))
}

void conv2d_fused_backward_weight(Stream& stream,
                                  const Shards& shards,
                                  const Conv2dBackwardWeightArgs& args,
                                  const Tensor& affine) {
  const FusionCheck check("conv2d_fused_backward_weight", stream, shards, args.in, affine);
  check.require(affine.defined(), "affine: without it, it is conv2d_backward_weight");
  check.require(!args.bias_gradient().defined(), "no bias");
  const Shape out_shape = conv2d_output_shape(args.in.shape(), args.weight_shape, args.params);
  check.like("grad_out", args.grad_out, out_shape, args.in.dtype());
  check.like(
      "grad_weight", args.grad_weight, {shards.local(), args.weight_shape.numel()}, Dtype::kF32);
  LS_DISPATCH_CUDNN(conv2d_fused_backward_weight,
                    fused(problem_of(args), affine),
                    (args.in, args.grad_out, args.grad_weight, affine),
                    (stream, shards, args, affine))
  LS_DISPATCH_CUDA(conv2d_fused_backward_weight, (stream, shards, args, affine))
}

}  // namespace lockstep::kernels
