#include <utility>

#include "kernels/conv2d_fused.h"
#include "nn/autocast.h"
#include "nn/functional.h"
#include "nn/norm_handover.h"

namespace lockstep::nn {
namespace {

// What the convolution of a training step does at once with the batch norms around it. Under
// autocast there is a cast between them.
struct Fusion {
  std::shared_ptr<DeferredNorm> norm = {};  // of the input; null: it is taken as it is
  bool gives_sums = false;                  // it does, where it takes a norm in
};

Fusion fusion_of(const Var& x, const Tensor& weight, const kernels::Conv2dParams& params) {
  const Batch& batch = x.batch();
  if (!batch.recording || batch.precision.autocast || batch.shards.per_group() != 1) return {};
  kernels::ConvolutionProblem form{.dtype = x.dtype(),
                                   .in = x.shape(),
                                   .weight = weight.shape(),
                                   .params = params,
                                   .gives_sums = true};
  const bool gives_sums = kernels::is_chosen(x.stream(), form);
  form.norms_in = true;
  auto norm = x.handover<DeferredNorm>();
  if (norm && kernels::is_chosen(x.stream(), form)) return {std::move(norm), true};
  return {.gives_sums = gives_sums};
}

}  // namespace

Var conv2d(const Var& input,
           const Var& weight,
           const Var& bias,
           const kernels::Conv2dParams& params) {
  const Var x = for_products(input);
  Stream& stream = x.stream();
  const Tensor& kernel = weight.as(x.dtype());
  const Shape shape = kernels::conv2d_output_shape(x.shape(), kernel.shape(), params);
  Tensor out = Tensor::empty(shape, x.dtype(), stream.device());
  const Fusion fusion = bias.defined() ? Fusion() : fusion_of(x, kernel, params);
  std::shared_ptr<ChannelSums> sums;
  Tensor unnormed, affine;
  if (fusion.norm) {
    unnormed = fusion.norm->in();
    affine = fusion.norm->affine(stream);
  }
  if (fusion.gives_sums) {
    sums = std::make_shared<ChannelSums>(
        Tensor::empty({2, x.shards().local(), shape[1]}, Dtype::kF32, stream.device()));
    kernels::conv2d_fused_forward(stream,
                                  x.shards(),
                                  fusion.norm ? unnormed : x.value(),
                                  affine,
                                  kernel,
                                  params,
                                  out,
                                  sums->rows);
  } else {
    const Tensor offset = bias.defined() ? bias.value() : Tensor();
    kernels::conv2d_forward(stream, x.shards(), x.value(), kernel, offset, params, out);
  }

  return record("conv2d",
                out,
                {x, weight, bias},
                [=](Stream& s, const Tensor& grad_out, Grads& grads) {
                  if (grads.wants(0)) {
                    kernels::conv2d_backward_data(
                        s, x.shards(), grad_out, kernel, params, grads.overwrite(0));
                  }
                  if (!grads.wants(1)) return;
                  if (affine.defined()) {
                    kernels::conv2d_fused_backward_weight(s,
                                                          x.shards(),
                                                          unnormed,
                                                          affine,
                                                          grad_out,
                                                          kernel.shape(),
                                                          params,
                                                          grads.overwrite(1));
                    return;
                  }
                  Tensor none;
                  Tensor& grad_bias = grads.wants(2) ? grads.overwrite(2) : none;
                  kernels::conv2d_backward_weight(s,
                                                  x.shards(),
                                                  x.value(),
                                                  grad_out,
                                                  kernel.shape(),
                                                  params,
                                                  grads.overwrite(1),
                                                  grad_bias);
                },
                {.handover = sums});
}

}  // namespace lockstep::nn
