#include "kernels/pool/avg_pool2d.h"

#include <algorithm>

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

// `image` is (N,C,H,W), the input or its gradient; `means` the other side.
void check_images(const OpCheck& check, const Shards& shards, const NamedTensor& image) {
  check.rank(image.name, image.tensor, 4);
  check.floating(image.name, image.tensor);
  check.covers(shards, image.tensor.shape()[0]);
}

void check_global(const OpCheck& check,
                  const Shards& shards,
                  const NamedTensor& image,
                  const NamedTensor& means) {
  check_images(check, shards, image);
  const Shape& from = image.tensor.shape();
  check.require(from[2] >= 1 && from[3] >= 1, "an image of at least one pixel");
  check.like(means.name, means.tensor, {from[0], from[1]}, image.tensor.dtype());
}

void check_adaptive(const OpCheck& check,
                    const Shards& shards,
                    const NamedTensor& image,
                    const NamedTensor& means) {
  constexpr int64_t kMaxPixels = 32767;  // their products are ints
  check_images(check, shards, image);
  check.rank(means.name, means.tensor, 4);
  const Shape& from = image.tensor.shape();
  const Shape& to = means.tensor.shape();
  const auto [least, most] = std::minmax({from[2], from[3], to[2], to[3]});
  check.require(least >= 1 && most <= kMaxPixels, "1 to 32767 pixels in height and width");
  check.like(means.name, means.tensor, {from[0], from[1], to[2], to[3]}, image.tensor.dtype());
}

}  // namespace

void global_avg_pool_forward(Stream& stream, const Shards& shards, const Tensor& in, Tensor& out) {
  const OpCheck check("global_avg_pool_forward", stream);
  check_global(check, shards, {"in", in}, {"out", out});
  if (check.dry(in.numel() + out.numel(), bytes_of(in, out))) return;
  LS_DISPATCH(global_avg_pool_forward, (stream, shards, in, out))
}

void global_avg_pool_backward(Stream& stream,
                              const Shards& shards,
                              const Tensor& grad_out,
                              Tensor& grad_in) {
  const OpCheck check("global_avg_pool_backward", stream);
  check_global(check, shards, {"grad_in", grad_in}, {"grad_out", grad_out});
  if (check.dry(grad_out.numel(), bytes_of(grad_in, grad_out))) return;
  LS_DISPATCH(global_avg_pool_backward, (stream, shards, grad_out, grad_in))
}

void adaptive_avg_pool2d_forward(Stream& stream,
                                 const Shards& shards,
                                 const Tensor& in,
                                 Tensor& out) {
  const OpCheck check("adaptive_avg_pool2d_forward", stream);
  check_adaptive(check, shards, {"in", in}, {"out", out});
  if (check.dry(in.numel() + out.numel(), bytes_of(in, out))) return;
  LS_DISPATCH(adaptive_avg_pool2d_forward, (stream, shards, in, out))
}

void adaptive_avg_pool2d_backward(Stream& stream,
                                  const Shards& shards,
                                  const Tensor& grad_out,
                                  Tensor& grad_in) {
  const OpCheck check("adaptive_avg_pool2d_backward", stream);
  check_adaptive(check, shards, {"grad_in", grad_in}, {"grad_out", grad_out});
  if (check.dry(grad_in.numel() + grad_out.numel(), bytes_of(grad_in, grad_out))) return;
  LS_DISPATCH(adaptive_avg_pool2d_backward, (stream, shards, grad_out, grad_in))
}

}  // namespace lockstep::kernels
