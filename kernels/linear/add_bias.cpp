#include "kernels/linear/add_bias.h"

#include <fmt/core.h>

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

void check_activations(const OpCheck& check, std::string_view name, const Tensor& tensor) {
  check.floating(name, tensor);
  const int rank = tensor.shape().rank();
  check.require(rank == 2 || rank == 4, fmt::format("{} of shape (N,C,H,W) or (N,C)", name));
}

}  // namespace

void add_bias_forward(Stream& stream, const Tensor& in, const Tensor& bias, Tensor& out) {
  const OpCheck check("add_bias_forward", stream);
  check_activations(check, "in", in);
  check.like("bias", bias, {in.shape()[1]}, Dtype::kF32);
  check.like("out", out, in.shape(), in.dtype());
  if (check.dry(in.numel(), bytes_of(in, out, bias))) return;
  LS_DISPATCH(add_bias_forward, (stream, in, bias, out))
}

void add_bias_backward(Stream& stream,
                       const Shards& shards,
                       const Tensor& grad_out,
                       Tensor& grad_bias) {
  const OpCheck check("add_bias_backward", stream);
  check_activations(check, "grad_out", grad_out);
  check.covers(shards, grad_out.shape()[0]);
  check.like("grad_bias", grad_bias, {shards.local(), grad_out.shape()[1]}, Dtype::kF32);
  if (check.dry(grad_out.numel(), bytes_of(grad_out, grad_bias))) return;
  LS_DISPATCH(add_bias_backward, (stream, shards, grad_out, grad_bias))
}

}  // namespace lockstep::kernels
