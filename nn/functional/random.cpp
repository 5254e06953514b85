#include "core/check.h"
#include "kernels/random/dropout.h"
#include "kernels/random/stochastic_depth.h"
#include "nn/functional.h"

namespace lockstep::nn {
namespace {

// The dry device draws nothing, so a dry run need not number its images.
Tensor image_numbers(const char* op, const Batch& batch, int64_t images) {
  const bool dry = batch.stream->device() == Device::kDry;
  if (dry) return Tensor::empty({images}, Dtype::kI64, Device::kDry);
  LS_CHECK(batch.draws.images.defined(), "[{}] the images of the batch have no numbers", op);
  return batch.draws.images;
}

}  // namespace

Var dropout(const Var& x, double p, uint32_t layer) {
  const Draws& draws = x.batch().draws;
  const Tensor images = image_numbers("dropout", x.batch(), x.shape()[0]);
  const kernels::DropoutParams params{.p = p, .seed = draws.seed, .layer = layer};
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.stream().device());
  kernels::dropout_forward(x.stream(), x.value(), images, params, out);
  return record("dropout", out, {x}, [=](Stream& s, Tensor& grad_out, Grads& grads) {
    kernels::dropout_backward(s, grad_out, images, params, grad_out);
    grads.give(0, grad_out);
  });
}

Var stochastic_depth(const Var& branch, const Var& shortcut, double p, uint32_t block) {
  const Batch& batch = branch.batch();
  const Tensor images = image_numbers("stochastic_depth", batch, branch.shape()[0]);
  const kernels::StochasticDepthParams params{.p = p, .seed = batch.draws.seed, .block = block};
  Tensor out = Tensor::empty(branch.shape(), branch.dtype(), branch.stream().device());
  kernels::stochastic_depth_forward(
      branch.stream(), branch.value(), shortcut.value(), images, params, out);
  return record(
      "stochastic_depth", out, {branch, shortcut}, [=](Stream& s, Tensor& grad_out, Grads& grads) {
        Tensor grad_branch = grads.wants(0) ? grads.overwrite(0)
                                            : Tensor::empty(out.shape(), out.dtype(), s.device());
        kernels::stochastic_depth_backward(s, out, images, params, grad_out, grad_branch);
        if (grads.wants(1)) grads.give(1, grad_out);
      });
}

}  // namespace lockstep::nn
