#include "kernels/conv/depthwise_conv2d.h"

#include "nn/autocast.h"
#include "nn/functional.h"

namespace lockstep::nn {

Var depthwise_conv2d(const Var& input, const Var& weight, const kernels::Conv2dParams& params) {
  const Var x = for_products(input);
  Stream& stream = x.stream();
  const Tensor& kernel = weight.as(x.dtype());
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
