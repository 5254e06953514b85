#include "kernels/random/dropout.h"

#include <fmt/core.h>

#include "core/philox.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

// Checks a call and declares its cost on the dry device. Returns true when there is nothing to run.
bool checked(const OpCheck& check,
             const NamedTensor& from,
             const Tensor& images,
             const DropoutParams& params,
             const NamedTensor& to) {
  constexpr int64_t kMaxDraws = int64_t{1} << 26;  // PhiloxStream's limit
  const Tensor& in = from.tensor;
  check.floating(from.name, in);
  check.require(in.shape().rank() >= 1, "a tensor of images");
  check.like("images", images, {in.shape()[0]}, Dtype::kI64);
  check.like(to.name, to.tensor, in.shape(), in.dtype());
  check.require(params.p >= 0 && params.p <= 1,
                fmt::format("a probability p from 0 to 1: got {}", params.p));
  check.require(in.numel() == 0 || in.shape().stride0() <= kMaxDraws,
                "at most 2^26 elements per image");
  return check.dry((1 + kPhiloxOperations) * in.numel(), bytes_of(in, to.tensor, images));
}

}  // namespace

void dropout_forward(Stream& stream,
                     const Tensor& in,
                     const Tensor& images,
                     const DropoutParams& params,
                     Tensor& out) {
  const OpCheck check("dropout_forward", stream);
  if (checked(check, {"in", in}, images, params, {"out", out})) return;
  LS_DISPATCH(dropout_forward, (stream, in, images, params, out))
}

void dropout_backward(Stream& stream,
                      const Tensor& grad_out,
                      const Tensor& images,
                      const DropoutParams& params,
                      Tensor& grad_in) {
  const OpCheck check("dropout_backward", stream);
  if (checked(check, {"grad_out", grad_out}, images, params, {"grad_in", grad_in})) return;
  LS_DISPATCH(dropout_backward, (stream, grad_out, images, params, grad_in))
}

}  // namespace lockstep::kernels
