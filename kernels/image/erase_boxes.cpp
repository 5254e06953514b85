#include "kernels/image/erase_boxes.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void erase_boxes(Stream& stream, const Shards& shards, const Tensor& boxes, Tensor& images) {
  const OpCheck check("erase_boxes", stream);
  check.floating("images", images);
  check.rank("images", images, 4);
  check.covers(shards, images.shape()[0]);
  check.like("boxes", boxes, {images.shape()[0], 4}, Dtype::kI32);
  if (check.dry(0, bytes_of(boxes, images))) return;
  LS_DISPATCH(erase_boxes, (stream, shards, boxes, images))
}

}  // namespace lockstep::kernels
