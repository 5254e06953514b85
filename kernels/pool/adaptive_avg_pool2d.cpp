#include "kernels/pool/adaptive_avg_pool2d.h"

#include <algorithm>

#include "kernels/support/dispatch.h"
#include "kernels/support/op_check.h"

namespace lockstep::kernels {
namespace {

// The input's side is `image` (N,C,H,W), the other `means` (N,C,OH,OW).
void check_pooled(const OpCheck& check,
                  const Shards& shards,
                  std::string_view image_name,
                  const Tensor& image,
                  std::string_view means_name,
                  const Tensor& means) {
  constexpr int64_t kMostPixels = 32767;  // their products are ints
  check.rank(image_name, image, 4);
  check.rank(means_name, means, 4);
  check.floating(image_name, image);
  const Shape& from = image.shape();
  const Shape& to = means.shape();
  const auto [least, most] = std::minmax({from[2], from[3], to[2], to[3]});
  check.require(least >= 1 && most <= kMostPixels, "1 to 32767 pixels in height and width");
  check.covers(shards, from[0]);
  check.like(means_name, means, {from[0], from[1], to[2], to[3]}, image.dtype());
}

int64_t bytes(const Tensor& a, const Tensor& b) {
  return static_cast<int64_t>(a.nbytes() + b.nbytes());
}

}  // namespace

void adaptive_avg_pool2d_forward(Stream& stream,
                                 const Shards& shards,
                                 const Tensor& in,
                                 Tensor& out) {
  const OpCheck check("adaptive_avg_pool2d_forward", stream);
  check_pooled(check, shards, "in", in, "out", out);
  if (check.dry(in.numel() + out.numel(), bytes(in, out))) return;
  LS_DISPATCH(adaptive_avg_pool2d_forward, (stream, shards, in, out))
}

void adaptive_avg_pool2d_backward(Stream& stream,
                                  const Shards& shards,
                                  const Tensor& grad_out,
                                  Tensor& grad_in) {
  const OpCheck check("adaptive_avg_pool2d_backward", stream);
  check_pooled(check, shards, "grad_in", grad_in, "grad_out", grad_out);
  if (check.dry(grad_in.numel() + grad_out.numel(), bytes(grad_in, grad_out))) return;
  LS_DISPATCH(adaptive_avg_pool2d_backward, (stream, shards, grad_out, grad_in))
}

}  // namespace lockstep::kernels
