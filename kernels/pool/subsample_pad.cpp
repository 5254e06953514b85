#include "kernels/pool/subsample_pad.h"

#include <fmt/core.h>

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

// `wide` is in or its gradient, `narrow` out or its own. Returns true when the stream is dry.
bool check_and_dry(const OpCheck& check,
                   const Shards& shards,
                   const NamedTensor& wide,
                   const NamedTensor& narrow,
                   int stride) {
  check.floating(wide.name, wide.tensor);
  check.rank(narrow.name, narrow.tensor, 4);
  const int64_t channels = narrow.tensor.shape()[1];
  const Shape shape = subsample_pad_output_shape(wide.tensor.shape(), channels, stride);
  check.like(narrow.name, narrow.tensor, shape, wide.tensor.dtype());
  check.covers(shards, shape[0]);
  return check.dry(0, bytes_of(wide.tensor, narrow.tensor));
}

}  // namespace

Shape subsample_pad_output_shape(const Shape& in, int64_t channels, int stride) {
  if (in.rank() != 4 || stride < 1 || channels < in[1] || (channels - in[1]) % 2 != 0) {
    throw ShapeError(
        fmt::format("[subsample_pad] required: in (N,C,H,W), stride >= 1, C channels and an even "
                    "number more; in {}, stride {}, {} channels",
                    to_string(in),
                    stride,
                    channels));
  }
  return {in[0], channels, (in[2] + stride - 1) / stride, (in[3] + stride - 1) / stride};
}

void subsample_pad_forward(
    Stream& stream, const Shards& shards, const Tensor& in, int stride, Tensor& out) {
  const OpCheck check("subsample_pad_forward", stream);
  if (check_and_dry(check, shards, {"in", in}, {"out", out}, stride)) return;
  LS_DISPATCH(subsample_pad_forward, (stream, shards, in, stride, out))
}

void subsample_pad_backward(
    Stream& stream, const Shards& shards, const Tensor& grad_out, int stride, Tensor& grad_in) {
  const OpCheck check("subsample_pad_backward", stream);
  if (check_and_dry(check, shards, {"grad_in", grad_in}, {"grad_out", grad_out}, stride)) return;
  LS_DISPATCH(subsample_pad_backward, (stream, shards, grad_out, stride, grad_in))
}

}  // namespace lockstep::kernels
