#include "kernels/elementwise/concat_channels.h"

#include "nn/functional.h"

namespace lockstep::nn {

Var concat_channels(const Var& a, const Var& b) {
  const Shape& shape = a.shape();
  Tensor out = Tensor::empty(
      {shape[0], shape[1] + b.shape()[1], shape[2], shape[3]}, a.dtype(), a.stream().device());
  kernels::concat_channels_forward(a.stream(), a.shards(), a.value(), b.value(), out);

  return record("concat_channels",
                out,
                {a, b},
                [batch = a.shared_batch(), of_a = shape, of_b = b.shape()](
                    Stream& s, const Tensor& grad_out, Grads& grads) {
                  const auto memory = [&](size_t i, const Shape& part) {
                    return grads.wants(i) ? grads.overwrite(i)
                                          : Tensor::empty(part, grad_out.dtype(), s.device());
                  };
                  Tensor grad_a = memory(0, of_a);
                  Tensor grad_b = memory(1, of_b);
                  kernels::concat_channels_backward(s, batch->shards, grad_out, grad_a, grad_b);
                });
}

}  // namespace lockstep::nn
