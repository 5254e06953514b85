#include "kernels/elementwise/add.h"
#include "kernels/elementwise/channel_gate.h"
#include "kernels/elementwise/concat_channels.h"
#include "kernels/elementwise/copy.h"
#include "kernels/elementwise/gelu.h"
#include "kernels/elementwise/relu.h"
#include "kernels/elementwise/scale.h"
#include "nn/functional.h"

namespace lockstep::nn {

Var relu(const Var& x) {
  Tensor out = Tensor::empty(x.shape(), x.value().dtype(), x.stream().device());
  kernels::relu_forward(x.stream(), x.value(), out);
  return record("relu", out, {x}, [=](Stream& s, const Tensor& grad_out, Grads& grads) {
    kernels::relu_backward(s, out, grad_out, grads.overwrite(0));
  });
}

Var gelu(const Var& x, kernels::GeluForm form) {
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.stream().device());
  kernels::gelu_forward(x.stream(), x.value(), form, out);
  return record(
      "gelu", out, {x}, [in = x.value(), form](Stream& s, const Tensor& grad_out, Grads& grads) {
        kernels::gelu_backward(s, in, grad_out, form, grads.overwrite(0));
      });
}

Var add(const Var& a, const Var& b) {
  Tensor out = Tensor::empty(a.shape(), a.dtype(), a.stream().device());
  kernels::copy(a.stream(), a.value(), out);
  kernels::add(a.stream(), b.value(), out);
  return record("add", out, {a, b}, [=](Stream& s, const Tensor& grad_out, Grads& grads) {
    if (grads.wants(1)) kernels::copy(s, grad_out, grads.overwrite(1));
    if (grads.wants(0)) grads.give(0, grad_out);
  });
}

Var scale(const Var& input, float factor) {
  const Var x = cast(input, Dtype::kF32);
  Tensor out = Tensor::empty(x.shape(), Dtype::kF32, x.stream().device());
  kernels::copy(x.stream(), x.value(), out);
  kernels::scale(x.stream(), factor, out);
  return record("scale", out, {x}, [factor](Stream& s, Tensor& grad_out, Grads& grads) {
    kernels::scale(s, factor, grad_out);
    grads.give(0, grad_out);
  });
}

Var cast(const Var& x, Dtype dtype) {
  if (x.dtype() == dtype) return x;
  Tensor out = Tensor::empty(x.shape(), dtype, x.stream().device());
  kernels::cast(x.stream(), x.value(), out);
  return record("cast", out, {x}, [](Stream& s, const Tensor& grad_out, Grads& grads) {
    kernels::cast(s, grad_out, grads.overwrite(0));
  });
}

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

Var channel_gate(const Var& x, const Var& gate_input, kernels::GateForm form) {
  const Var gate = cast(gate_input, x.dtype());
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.stream().device());
  kernels::channel_gate_forward(x.stream(), x.shards(), x.value(), gate.value(), form, out);

  return record("channel_gate", out, {x, gate}, [=](Stream& s, Tensor& grad_out, Grads& grads) {
    Tensor grad_in = Tensor::empty(grad_out.shape(), grad_out.dtype(), s.device());
    Tensor grad_gate = Tensor::empty(gate.shape(), grad_out.dtype(), s.device());
    kernels::channel_gate_backward(s,
                                   x.shards(),
                                   {.grad_out = grad_out,
                                    .in = x.value(),
                                    .gate = gate.value(),
                                    .form = form,
                                    .grad_in = grad_in,
                                    .grad_gate = grad_gate});
    if (grads.wants(0)) grads.give(0, grad_in);
    if (grads.wants(1)) grads.give(1, grad_gate);
  });
}

}  // namespace lockstep::nn
