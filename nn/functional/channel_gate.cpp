#include "kernels/elementwise/channel_gate.h"

#include "nn/functional.h"

namespace lockstep::nn {

Var channel_gate(const Var& x, const Var& gate_of_any_type) {
  const Var gate = cast(gate_of_any_type, x.dtype());
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.stream().device());
  kernels::channel_gate_forward(x.stream(), x.shards(), x.value(), gate.value(), out);

  return record("channel_gate", out, {x, gate}, [=](Stream& s, Tensor& grad_out, Grads& grads) {
    Tensor grad_in = Tensor::empty(grad_out.shape(), grad_out.dtype(), s.device());
    Tensor grad_gate = Tensor::empty(gate.shape(), grad_out.dtype(), s.device());
    kernels::channel_gate_backward(s,
                                   x.shards(),
                                   {.grad_out = grad_out,
                                    .in = x.value(),
                                    .gate = gate.value(),
                                    .grad_in = grad_in,
                                    .grad_gate = grad_gate});
    if (grads.wants(0)) grads.give(0, grad_in);
    if (grads.wants(1)) grads.give(1, grad_gate);
  });
}

}  // namespace lockstep::nn
