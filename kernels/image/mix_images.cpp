#include "kernels/image/mix_images.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void mix_images(Stream& stream, const Shards& shards, const Tensor& mix, Tensor& images) {
  const OpCheck check("mix_images", stream);
  check.floating("images", images);
  check.require(images.shape().rank() >= 1, "images in rows");
  check.covers(shards, images.shape()[0]);
  check.like("mix", mix, {1}, Dtype::kF32);
  if (check.dry(3 * images.numel(), bytes_of(images, images))) return;
  LS_DISPATCH(mix_images, (stream, shards, mix, images))
}

}  // namespace lockstep::kernels
