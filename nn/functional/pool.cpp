#include "kernels/pool/avg_pool2d.h"
#include "kernels/pool/max_pool2d.h"
#include "kernels/pool/subsample_pad.h"
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

Var global_avg_pool(const Var& x) {
  Tensor out = Tensor::empty({x.shape()[0], x.shape()[1]}, x.value().dtype(), x.stream().device());
  kernels::global_avg_pool_forward(x.stream(), x.shards(), x.value(), out);

  const std::shared_ptr<const Batch>& batch = x.shared_batch();
  return record("global_avg_pool", out, {x}, [=](Stream& s, const Tensor& grad_out, Grads& grads) {
    kernels::global_avg_pool_backward(s, batch->shards, grad_out, grads.overwrite(0));
  });
}

Var adaptive_avg_pool2d(const Var& x, int64_t height, int64_t width) {
  const Shape& in = x.shape();
  if (in[2] == height && in[3] == width) return x;
  Tensor out = Tensor::empty({in[0], in[1], height, width}, x.dtype(), x.stream().device());
  kernels::adaptive_avg_pool2d_forward(x.stream(), x.shards(), x.value(), out);

  const std::shared_ptr<const Batch>& batch = x.shared_batch();
  return record(
      "adaptive_avg_pool2d", out, {x}, [=](Stream& s, const Tensor& grad_out, Grads& grads) {
        kernels::adaptive_avg_pool2d_backward(s, batch->shards, grad_out, grads.overwrite(0));
      });
}

Var subsample_pad(const Var& x, int64_t channels) {
  constexpr int kStride = 2;
  const Shape shape = kernels::subsample_pad_output_shape(x.shape(), channels, kStride);
  Tensor out = Tensor::empty(shape, x.value().dtype(), x.stream().device());
  kernels::subsample_pad_forward(x.stream(), x.shards(), x.value(), kStride, out);

  const std::shared_ptr<const Batch>& batch = x.shared_batch();
  return record("subsample_pad", out, {x}, [=](Stream& s, const Tensor& grad_out, Grads& grads) {
    kernels::subsample_pad_backward(s, batch->shards, grad_out, kStride, grads.overwrite(0));
  });
}

}  // namespace lockstep::nn
