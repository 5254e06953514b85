#include <cstring>

#include "kernels/image/erase_boxes.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {

// A zero consists of zero bytes in every float type.
void erase_boxes(Stream& stream, const Shards& shards, const Tensor& boxes, Tensor& images) {
  const Shape& shape = images.shape();
  const auto pixel = static_cast<int64_t>(size_of(images.dtype())) * shape[1];
  for_images(stream, shards, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int32_t* const box = boxes.data<int32_t>() + 4 * n;
      for (int64_t y = box[0]; y < box[0] + box[2]; ++y) {
        const int64_t first = (n * shape[2] + y) * shape[3] + box[1];
        std::memset(images.bytes() + first * pixel, 0, static_cast<size_t>(box[3] * pixel));
      }
    }
  });
}

}  // namespace lockstep::kernels::LS_CPU
