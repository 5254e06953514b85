#include "kernels/conv2d.h"

#include "nn/autocast.h"
#include "nn/functional.h"

namespace lockstep::nn {

Var conv2d(const Var& input,
           const Var& weight,
           const Var& bias,
           const kernels::Conv2dParams& params) {
  const Var x = for_products(input);
  Stream& stream = x.stream();
  const Tensor& kernel = weight.as(x.dtype());
  const Shape shape = kernels::conv2d_output_shape(x.shape(), kernel.shape(), params);
  Tensor out = Tensor::empty(shape, x.value().dtype(), stream.device());
  const Tensor offset = bias.defined() ? bias.value() : Tensor();
  kernels::conv2d_forward(stream, x.shards(), x.value(), kernel, offset, params, out);

  return record(
      "conv2d", out, {x, weight, bias}, [=](Stream& s, const Tensor& grad_out, Grads& grads) {
        if (grads.wants(0)) {
          kernels::conv2d_backward_data(
              s, x.shards(), grad_out, kernel, params, grads.overwrite(0));
        }
        if (grads.wants(1)) {
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
        }
      });
}

}  // namespace lockstep::nn
