#include "kernels/image/normalize_image.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

void check_images(const OpCheck& check,
                  const Shards& shards,
                  const Tensor& in,
                  const NormalizeImageParams& params,
                  const Tensor& out) {
  check.rank("in", in, 4);
  check.dtype("in", in, {Dtype::kU8});
  check.covers(shards, in.shape()[0]);
  check.floating("out", out);
  check.like("out", out, in.shape(), out.dtype());
  const auto channels = static_cast<size_t>(in.shape()[1]);
  check.require(params.mean.empty() || params.mean.size() == channels, "a mean per channel");
  check.require(params.std.empty() || params.std.size() == channels, "a std per channel");
}

}  // namespace

void normalize_image(Stream& stream,
                     const Shards& shards,
                     const Tensor& in,
                     const NormalizeImageParams& params,
                     Tensor& out) {
  const OpCheck check("normalize_image", stream);
  check_images(check, shards, in, params, out);
  if (check.dry(3 * in.numel(), bytes_of(in, out))) return;
  LS_DISPATCH(normalize_image, (stream, shards, in, params, out))
}

void crop_flip_normalize(Stream& stream,
                         const Shards& shards,
                         const Tensor& in,
                         const Tensor& indices,
                         const CropFlipNormalizeParams& params,
                         Tensor& out) {
  const OpCheck check("crop_flip_normalize", stream);
  check_images(check, shards, in, params.normalize, out);
  const Shape& shape = in.shape();
  check.like("indices", indices, {shape[0]}, Dtype::kI64);
  check.require(pad_fits(params.augmentation, shape[2], shape[3]),
                "0 <= pad, at most the image's height and width, less where it is mirrored");
  if (check.dry(3 * in.numel(), bytes_of(in, indices, out))) return;
  LS_DISPATCH(crop_flip_normalize, (stream, shards, in, indices, params, out))
}

}  // namespace lockstep::kernels
