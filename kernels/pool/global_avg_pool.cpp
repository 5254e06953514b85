#include "kernels/pool/global_avg_pool.h"

#include "kernels/support/dispatch.h"
#include "kernels/support/op_check.h"

namespace lockstep::kernels {
namespace {

// The full-size side is `image` (N,C,H,W), the other `mean` (N,C).
void check_averaged(const OpCheck& check,
                    const Shards& shards,
                    std::string_view image_name,
                    const Tensor& image,
                    std::string_view mean_name,
                    const Tensor& mean) {
  check.rank(image_name, image, 4);
  check.floating(image_name, image);
  const Shape& shape = image.shape();
  check.require(shape[2] >= 1 && shape[3] >= 1, "an image of at least one pixel");
  check.covers(shards, shape[0]);
  check.like(mean_name, mean, {shape[0], shape[1]}, image.dtype());
}

}  // namespace

void global_avg_pool_forward(Stream& stream, const Shards& shards, const Tensor& in, Tensor& out) {
  const OpCheck check("global_avg_pool_forward", stream);
  check_averaged(check, shards, "in", in, "out", out);
  if (check.dry(in.numel() + out.numel(), static_cast<int64_t>(in.nbytes() + out.nbytes()))) return;
  LS_DISPATCH(global_avg_pool_forward, (stream, shards, in, out))
}

void global_avg_pool_backward(Stream& stream,
                              const Shards& shards,
                              const Tensor& grad_out,
                              Tensor& grad_in) {
  const OpCheck check("global_avg_pool_backward", stream);
  check_averaged(check, shards, "grad_in", grad_in, "grad_out", grad_out);
  if (check.dry(grad_out.numel(), static_cast<int64_t>(grad_in.nbytes() + grad_out.nbytes()))) {
    return;
  }
  LS_DISPATCH(global_avg_pool_backward, (stream, shards, grad_out, grad_in))
}

}  // namespace lockstep::kernels
