// Specification of swap_boxes in kernels/image/mix_images.h, for one channel of the images of one
// shard.
#pragma once

#include <vector>

namespace lockstep::reference {

using Plane = std::vector<std::vector<double>>;

struct SwappedBox {
  size_t top, left, height, width;
};

inline std::vector<Plane> swap_boxes(const std::vector<Plane>& images, const SwappedBox& box) {
  std::vector<Plane> swapped = images;
  for (size_t n = 0; n < images.size(); ++n) {
    const Plane& partner = images[images.size() - 1 - n];
    for (size_t y = box.top; y < box.top + box.height; ++y) {
      for (size_t x = box.left; x < box.left + box.width; ++x) swapped[n][y][x] = partner[y][x];
    }
  }
  return swapped;
}

}  // namespace lockstep::reference
