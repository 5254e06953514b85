#include "kernels/pool/subsample_pad.h"

#include "nn/functional.h"

namespace lockstep::nn {

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
