#include "kernels/elementwise/relu.h"

#include "nn/functional.h"

namespace lockstep::nn {

Var relu(const Var& x) {
  Tensor out = Tensor::empty(x.shape(), x.value().dtype(), x.stream().device());
  kernels::relu_forward(x.stream(), x.value(), out);
  return record("relu", out, {x}, [=](Stream& s, const Tensor& grad_out, Grads& grads) {
    kernels::relu_backward(s, out, grad_out, grads.overwrite(0));
  });
}

}  // namespace lockstep::nn
