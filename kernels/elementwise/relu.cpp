#include "kernels/elementwise/relu.h"

#include "kernels/support/dispatch.h"
#include "kernels/support/op_check.h"

namespace lockstep::kernels {

void relu_forward(Stream& stream, const Tensor& in, Tensor& out) {
  const OpCheck check("relu_forward", stream);
  check.floating("in", in);
  check.like("out", out, in.shape(), in.dtype());
  if (check.dry(in.numel(), static_cast<int64_t>(2 * in.nbytes()))) return;
  LS_DISPATCH(relu_forward, (stream, in, out))
}

void relu_backward(Stream& stream, const Tensor& out, const Tensor& grad_out, Tensor& grad_in) {
  const OpCheck check("relu_backward", stream);
  check.floating("out", out);
  check.like("grad_out", grad_out, out.shape(), out.dtype());
  check.like("grad_in", grad_in, out.shape(), out.dtype());
  if (check.dry(out.numel(), static_cast<int64_t>(3 * out.nbytes()))) return;
  LS_DISPATCH(relu_backward, (stream, out, grad_out, grad_in))
}

}  // namespace lockstep::kernels
