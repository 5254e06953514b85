#include "kernels/image/normalize_image.h"

#include "kernels/support/dispatch.h"
#include "kernels/support/op_check.h"

namespace lockstep::kernels {

void normalize_image(Stream& stream,
                     const Shards& shards,
                     const Tensor& in,
                     const NormalizeImageParams& params,
                     Tensor& out) {
  const OpCheck check("normalize_image", stream);
  check.rank("in", in, 4);
  check.dtype("in", in, {Dtype::kU8});
  check.covers(shards, in.shape()[0]);
  check.floating("out", out);
  check.like("out", out, in.shape(), out.dtype());
  const auto channels = static_cast<size_t>(in.shape()[1]);
  check.require(params.mean.empty() || params.mean.size() == channels, "a mean per channel");
  check.require(params.std.empty() || params.std.size() == channels, "a std per channel");
  if (check.dry(3 * in.numel(), static_cast<int64_t>(in.nbytes() + out.nbytes()))) return;
  LS_DISPATCH(normalize_image, (stream, shards, in, params, out))
}

}  // namespace lockstep::kernels
