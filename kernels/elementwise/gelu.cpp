#include "kernels/elementwise/gelu.h"

#include "kernels/elementwise/gelu_rule.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void gelu_forward(Stream& stream, const Tensor& in, GeluForm form, Tensor& out) {
  const OpCheck check("gelu_forward", stream);
  check.floating("in", in);
  check.like("out", out, in.shape(), in.dtype());
  if (check.dry(gelu_flops(form) * in.numel(), bytes_of(in, out))) return;
  LS_DISPATCH(gelu_forward, (stream, in, form, out))
}

void gelu_backward(
    Stream& stream, const Tensor& in, const Tensor& grad_out, GeluForm form, Tensor& grad_in) {
  const OpCheck check("gelu_backward", stream);
  check.floating("in", in);
  check.like("grad_out", grad_out, in.shape(), in.dtype());
  check.like("grad_in", grad_in, in.shape(), in.dtype());
  if (check.dry(gelu_slope_flops(form) * in.numel(), bytes_of(in, grad_out, grad_in))) return;
  LS_DISPATCH(gelu_backward, (stream, in, grad_out, form, grad_in))
}

}  // namespace lockstep::kernels
