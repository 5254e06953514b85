// Boxes of pixels, for tests of kernels/image/erase_boxes.h.
#pragma once

#include <algorithm>

#include "core/tensor.h"

namespace lockstep::testing {

// Boxes in images of 7 by 9 pixels: inside, in two corners, of one pixel, of all, of none.
inline Tensor boxes_of_each_kind() {
  constexpr int32_t kBoxes[6][4] = {
      {2, 3, 4, 5}, {0, 0, 3, 2}, {4, 6, 3, 3}, {6, 8, 1, 1}, {0, 0, 7, 9}, {3, 3, 0, 0}};
  Tensor boxes = Tensor::empty({6, 4}, Dtype::kI32);
  std::copy_n(&kBoxes[0][0], 24, boxes.data<int32_t>());
  return boxes;
}

}  // namespace lockstep::testing
