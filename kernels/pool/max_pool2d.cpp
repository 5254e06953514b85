#include "kernels/pool/max_pool2d.h"

#include <fmt/core.h>

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

void require(bool ok, const Shape& in, const MaxPool2dParams& p, std::string_view requirement) {
  if (ok) return;
  throw ShapeError(fmt::format(
      "[max_pool2d] window: got in {}, kernel ({},{}), stride ({},{}), pad ({},{}), expected {}",
      to_string(in),
      p.kernel_h,
      p.kernel_w,
      p.stride_h,
      p.stride_w,
      p.pad_h,
      p.pad_w,
      requirement));
}

}  // namespace

Shape max_pool2d_output_shape(const Shape& in, const MaxPool2dParams& p) {
  require(in.rank() == 4, in, p, "rank 4");
  require(p.kernel_h >= 1 && p.kernel_w >= 1 && p.stride_h >= 1 && p.stride_w >= 1,
          in,
          p,
          "kernel and stride >= 1");
  require(int64_t{p.kernel_h} * p.kernel_w <= 256, in, p, "at most 256 taps");
  require(p.pad_h >= 0 && p.pad_h <= p.kernel_h / 2 && p.pad_w >= 0 && p.pad_w <= p.kernel_w / 2,
          in,
          p,
          "0 <= pad <= kernel / 2");
  const int64_t span_h = in[2] + int64_t{2} * p.pad_h - p.kernel_h;
  const int64_t span_w = in[3] + int64_t{2} * p.pad_w - p.kernel_w;
  require(in[2] >= 1 && in[3] >= 1 && span_h >= 0 && span_w >= 0,
          in,
          p,
          "an image that holds a window");
  return {in[0], in[1], span_h / p.stride_h + 1, span_w / p.stride_w + 1};
}

void max_pool2d_forward(Stream& stream,
                        const Shards& shards,
                        const Tensor& in,
                        const MaxPool2dParams& params,
                        Tensor& out,
                        Tensor& winner) {
  const OpCheck check("max_pool2d_forward", stream);
  check.rank("in", in, 4);
  check.floating("in", in);
  check.covers(shards, in.shape()[0]);
  const Shape pooled = max_pool2d_output_shape(in.shape(), params);
  check.like("out", out, pooled, in.dtype());
  check.like("winner", winner, pooled, Dtype::kU8);
  if (check.dry(out.numel() * params.kernel_h * params.kernel_w, bytes_of(in, out, winner))) return;
  LS_DISPATCH(max_pool2d_forward, (stream, shards, in, params, out, winner))
}

void max_pool2d_backward(Stream& stream,
                         const Shards& shards,
                         const Tensor& grad_out,
                         const Tensor& winner,
                         const MaxPool2dParams& params,
                         Tensor& grad_in) {
  const OpCheck check("max_pool2d_backward", stream);
  check.rank("grad_in", grad_in, 4);
  check.floating("grad_in", grad_in);
  check.covers(shards, grad_in.shape()[0]);
  const Shape pooled = max_pool2d_output_shape(grad_in.shape(), params);
  check.like("grad_out", grad_out, pooled, grad_in.dtype());
  check.like("winner", winner, pooled, Dtype::kU8);
  if (check.dry(grad_out.numel(), bytes_of(grad_in, grad_out, winner))) return;
  LS_DISPATCH(max_pool2d_backward, (stream, shards, grad_out, winner, params, grad_in))
}

}  // namespace lockstep::kernels
