#include "kernels/elementwise/relu.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void relu_forward(Stream& stream, const Tensor& in, Tensor& out) {
  const OpCheck check("relu_forward", stream);
  check.floating("in", in);
  check.like("out", out, in.shape(), in.dtype());
  if (check.dry(in.numel(), bytes_of(in, out))) return;
  LS_DISPATCH(relu_forward, (stream, in, out))
}

void relu_backward(Stream& stream, const Tensor& out, const Tensor& grad_out, Tensor& grad_in) {
  const OpCheck check("relu_backward", stream);
  check.floating("out", out);
  check.like("grad_out", grad_out, out.shape(), out.dtype());
  check.like("grad_in", grad_in, out.shape(), out.dtype());
  if (check.dry(out.numel(), bytes_of(out, grad_out, grad_in))) return;
  LS_DISPATCH(relu_backward, (stream, out, grad_out, grad_in))
}

}  // namespace lockstep::kernels
