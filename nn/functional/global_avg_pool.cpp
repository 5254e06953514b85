#include "kernels/pool/global_avg_pool.h"

#include "nn/functional.h"

namespace lockstep::nn {

Var global_avg_pool(const Var& x) {
  Tensor out = Tensor::empty({x.shape()[0], x.shape()[1]}, x.value().dtype(), x.stream().device());
  kernels::global_avg_pool_forward(x.stream(), x.shards(), x.value(), out);

  const std::shared_ptr<const Batch>& batch = x.shared_batch();
  return record("global_avg_pool", out, {x}, [=](Stream& s, const Tensor& grad_out, Grads& grads) {
    kernels::global_avg_pool_backward(s, batch->shards, grad_out, grads.overwrite(0));
  });
}

}  // namespace lockstep::nn
