#include "kernels/elementwise/cast.h"

#include "nn/functional.h"

namespace lockstep::nn {

Var cast(const Var& x, Dtype dtype) {
  if (x.dtype() == dtype) return x;
  Tensor out = Tensor::empty(x.shape(), dtype, x.stream().device());
  kernels::cast(x.stream(), x.value(), out);
  return record("cast", out, {x}, [](Stream& s, const Tensor& grad_out, Grads& grads) {
    kernels::cast(s, grad_out, grads.overwrite(0));
  });
}

}  // namespace lockstep::nn
