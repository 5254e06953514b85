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

void swap_boxes(Stream& stream, const Shards& shards, const Region& box, Tensor& images) {
  const OpCheck check("swap_boxes", stream);
  check.floating("images", images);
  check.rank("images", images, 4);
  const Shape& shape = images.shape();
  check.covers(shards, shape[0]);
  const auto fits = [](int64_t first, int64_t count, int64_t size) {
    return first >= 0 && count >= 0 && first + count <= size;
  };
  check.require(fits(box.top, box.height, shape[2]) && fits(box.left, box.width, shape[3]),
                "a box within the images");
  const int64_t values = shape[0] * shape[1] * box.height * box.width;
  if (check.dry(0, 2 * values * static_cast<int64_t>(size_of(images.dtype())))) return;
  LS_DISPATCH(swap_boxes, (stream, shards, box, images))
}

}  // namespace lockstep::kernels
