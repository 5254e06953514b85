// Boxes of pixels, for tests of kernels/image/erase_boxes.h.
#pragma once

#include <algorithm>

#include "core/tensor.h"

namespace lockstep::testing {

// Boxes in images of 7 by 9 pixels: an inner box, two in corners, one of a single pixel, the whole
// image, and an empty one.
inline Tensor boxes_of_each_kind() {
  constexpr int32_t kBoxes[6][4] = {
      {2, 3, 4, 5}, {0, 0, 3, 2}, {4, 6, 3, 3}, {6, 8, 1, 1}, {0, 0, 7, 9}, {3, 3, 0, 0}};
  Tensor boxes = Tensor::empty({6, 4}, Dtype::kI32);
  std::copy_n(&kBoxes[0][0], 24, boxes.data<int32_t>());
  return boxes;
}

}  // namespace lockstep::testing
