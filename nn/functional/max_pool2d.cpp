#include "kernels/pool/max_pool2d.h"

#include "nn/functional.h"

namespace lockstep::nn {

Var max_pool2d(const Var& x, const kernels::MaxPool2dParams& params) {
  const Device device = x.stream().device();
  const Shape shape = kernels::max_pool2d_output_shape(x.shape(), params);
  Tensor out = Tensor::empty(shape, x.value().dtype(), device);
  Tensor winner = Tensor::empty(shape, Dtype::kU8, device);
  kernels::max_pool2d_forward(x.stream(), x.shards(), x.value(), params, out, winner);

  const std::shared_ptr<const Batch>& batch =
      x.shared_batch();  // keeps winner and shards, not x's value
  return record("max_pool2d", out, {x}, [=](Stream& s, const Tensor& grad_out, Grads& grads) {
    kernels::max_pool2d_backward(s, batch->shards, grad_out, winner, params, grads.overwrite(0));
  });
}

}  // namespace lockstep::nn
