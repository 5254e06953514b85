#include "core/check.h"
#include "kernels/random/dropout.h"
#include "nn/functional.h"

namespace lockstep::nn {
namespace {

// The dry device draws nothing, so that a dry run need not number its images.
Tensor numbers_of(const Batch& batch, int64_t images) {
  const bool dry = batch.stream->device() == Device::kDry;
  if (dry) return Tensor::empty({images}, Dtype::kI64, Device::kDry);
  LS_CHECK(batch.draws.images.defined(), "[dropout] the images of the batch have no numbers");
  return batch.draws.images;
}

}  // namespace

Var dropout(const Var& x, double p, uint32_t layer) {
  const Draws& draws = x.batch().draws;
  const Tensor images = numbers_of(x.batch(), x.shape()[0]);
  const kernels::DropoutParams params{.p = p, .seed = draws.seed, .layer = layer};
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.stream().device());
  kernels::dropout_forward(x.stream(), x.value(), images, params, out);
  return record("dropout", out, {x}, [=](Stream& s, Tensor& grad_out, Grads& grads) {
    kernels::dropout_backward(s, grad_out, images, params, grad_out);
    grads.give(0, grad_out);
  });
}

}  // namespace lockstep::nn
