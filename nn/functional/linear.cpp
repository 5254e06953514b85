#include "kernels/linear/linear.h"

#include <fmt/core.h>

#include "core/error.h"
#include "kernels/linear/add_bias.h"
#include "nn/autocast.h"
#include "nn/functional.h"

namespace lockstep::nn {
namespace {

// Keeps axis 0 and joins all others into one, in the order of memory.
Tensor as_rows(const Tensor& tensor) {
  return tensor.view({tensor.shape()[0], tensor.shape().stride0()});
}

// A weight of rank 2 has PyTorch's columns, by channel; pixels are in memory by row and column.
void check_columns(const Shape& in, const Shape& weight) {
  const bool has_channels_last = in.rank() == 4 && in[1] > 1 && in[2] * in[3] > 1;
  if (!has_channels_last || weight.rank() == 4) return;
  throw ShapeError(fmt::format("[linear] weight: got {}, expected (O,C,H,W) for images of {}",
                               to_string(weight),
                               to_string(in)),
                   "a weight of two axes has its columns in another order than the pixels",
                   "Linear(init, Shape{C, H, W}, features)");
}

}  // namespace

Var linear(const Var& input, const Var& weight, const Var& bias) {
  const Var x = cast_for_products(input);
  check_columns(x.shape(), weight.shape());
  Stream& stream = x.stream();
  const Tensor in = as_rows(x.value());
  const Tensor matrix = as_rows(weight_for(x, weight));
  Tensor out = Tensor::empty({in.shape()[0], matrix.shape()[0]}, in.dtype(), stream.device());
  const Tensor offset = bias.defined() ? bias.value() : Tensor();
  kernels::linear_forward(stream, x.shards(), in, matrix, offset, out);

  return record(
      "linear", out, {x, weight, bias}, [=](Stream& s, const Tensor& grad_out, Grads& grads) {
        if (grads.wants(0)) {
          Tensor grad_in = as_rows(grads.overwrite(0));
          kernels::linear_backward_data(s, x.shards(), grad_out, matrix, grad_in);
        }
        if (grads.wants(1)) {
          Tensor none;
          Tensor& grad_bias = grads.wants(2) ? grads.overwrite(2) : none;
          kernels::linear_backward_weight(
              s, x.shards(), as_rows(x.value()), grad_out, grads.overwrite(1), grad_bias);
        } else if (grads.wants(2)) {
          kernels::add_bias_backward(s, x.shards(), grad_out, grads.overwrite(2));
        }
      });
}

}  // namespace lockstep::nn
