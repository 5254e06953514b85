// Specification of kernels/image/erase_boxes.h for one channel of one image.
#pragma once

#include <vector>

namespace lockstep::reference {

struct ErasedBox {
  int top, left, height, width;
};

inline std::vector<std::vector<double>> erase_boxes(std::vector<std::vector<double>> rows,
                                                    const ErasedBox& box) {
  for (int y = 0; y < box.height; ++y) {
    for (int x = 0; x < box.width; ++x) {
      rows[static_cast<size_t>(box.top + y)][static_cast<size_t>(box.left + x)] = 0;
    }
  }
  return rows;
}

}  // namespace lockstep::reference
