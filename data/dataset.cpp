#include "data/dataset.h"

#include <algorithm>
#include <vector>

namespace lockstep::data {
namespace {

void copy_reversed(const uint8_t* from, int64_t pixels, int64_t channels, uint8_t* to) {
  for (int64_t x = 0; x < pixels; ++x) {
    std::copy_n(from + (pixels - 1 - x) * channels, channels, to + x * channels);
  }
}

}  // namespace

void crop_flip(const ImageShape& shape,
               int64_t pad,
               const CropFlip& change,
               std::span<const uint8_t> from,
               std::span<uint8_t> to) {
  const int64_t channels = shape.channels;
  const int64_t row_bytes = shape.width * channels;
  // Columns [begin, end) of the crop lie on the image, `shift` to the right of the same columns.
  const int64_t shift = change.left - pad;
  const int64_t begin = std::clamp<int64_t>(-shift, 0, shape.width);
  const int64_t end = std::clamp<int64_t>(shape.width - shift, begin, shape.width);
  for (int64_t row = 0; row < shape.height; ++row) {
    uint8_t* const out = to.data() + row * row_bytes;
    const int64_t source_row = row + change.top - pad;
    if (source_row < 0 || source_row >= shape.height) {
      std::fill_n(out, row_bytes, uint8_t{0});
      continue;
    }
    const uint8_t* const in = from.data() + source_row * row_bytes + (begin + shift) * channels;
    const int64_t before = change.flip ? shape.width - end : begin;
    std::fill_n(out, before * channels, uint8_t{0});
    uint8_t* const middle = out + before * channels;
    const int64_t pixels = end - begin;
    if (change.flip) {
      copy_reversed(in, pixels, channels, middle);
    } else {
      std::copy_n(in, pixels * channels, middle);
    }
    std::fill(middle + pixels * channels, out + row_bytes, uint8_t{0});
  }
}

void Dataset::read_for_training(int64_t i,
                                int64_t epoch,
                                const Augmentation& augmentation,
                                std::span<uint8_t> pixels) const {
  if (!augmentation.changes_images()) return read(i, pixels);
  thread_local std::vector<uint8_t> original;
  original.resize(pixels.size());
  read(i, original);
  const CropFlip change = draw_crop_flip(augmentation, epoch, i);
  crop_flip(image_shape(), augmentation.pad, change, original, pixels);
}

}  // namespace lockstep::data
