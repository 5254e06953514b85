#include "kernels/image/crop_flip_normalize.h"

#include <algorithm>

#include "kernels/support/dispatch.h"
#include "kernels/support/op_check.h"

namespace lockstep::kernels {

void crop_flip_normalize(Stream& stream,
                         const Shards& shards,
                         const Tensor& in,
                         const Tensor& indices,
                         const CropFlipNormalizeParams& params,
                         Tensor& out) {
  const OpCheck check("crop_flip_normalize", stream);
  check.rank("in", in, 4);
  check.dtype("in", in, {Dtype::kU8});
  const Shape& shape = in.shape();
  check.covers(shards, shape[0]);
  check.like("indices", indices, {shape[0]}, Dtype::kI64);
  check.floating("out", out);
  check.like("out", out, shape, out.dtype());
  const int64_t pad = params.augmentation.pad;
  check.require(0 <= pad && pad <= std::min(shape[2], shape[3]),
                "0 <= pad, at most the image's height and width");
  const auto channels = static_cast<size_t>(shape[1]);
  const auto& [mean, std] = params.normalize;
  check.require(mean.empty() || mean.size() == channels, "a mean per channel");
  check.require(std.empty() || std.size() == channels, "a std per channel");
  if (check.dry(3 * in.numel(),
                static_cast<int64_t>(in.nbytes() + indices.nbytes() + out.nbytes()))) {
    return;
  }
  LS_DISPATCH(crop_flip_normalize, (stream, shards, in, indices, params, out))
}

}  // namespace lockstep::kernels
