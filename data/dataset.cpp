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
               const Augmentation& augmentation,
               const CropFlip& change,
               std::span<const uint8_t> from,
               std::span<uint8_t> to) {
  const auto& [channels, height, width] = shape;
  const int64_t row_bytes = width * channels;
  // Columns [begin, end) of the crop show the image's columns [begin + shift, end + shift).
  const int64_t shift = change.left - augmentation.pad;
  const int64_t begin = std::clamp<int64_t>(-shift, 0, width);
  const int64_t end = std::clamp<int64_t>(width - shift, begin, width);
  const int64_t before = change.flip ? width - end : begin;
  const int64_t after = before + end - begin;
  for (int64_t row = 0; row < height; ++row) {
    uint8_t* const out = to.data() + row * row_bytes;
    const int64_t source_row =
        pixel_at(augmentation.pad_mode, row + change.top - augmentation.pad, height);
    if (source_row < 0) {
      std::fill_n(out, row_bytes, uint8_t{0});
      continue;
    }
    const uint8_t* const in = from.data() + source_row * row_bytes;
    const auto pad = [&](int64_t column, int64_t last) {
      for (; column < last; ++column) {
        const int64_t x = (change.flip ? width - 1 - column : column) + shift;
        const int64_t source = pixel_at(augmentation.pad_mode, x, width);
        for (int64_t c = 0; c < channels; ++c) {
          out[column * channels + c] = source < 0 ? uint8_t{0} : in[source * channels + c];
        }
      }
    };
    pad(0, before);
    const uint8_t* const middle = in + (begin + shift) * channels;
    if (change.flip) {
      copy_reversed(middle, end - begin, channels, out + before * channels);
    } else {
      std::copy_n(middle, (end - begin) * channels, out + before * channels);
    }
    pad(after, width);
  }
}

void Dataset::read_for_training(int64_t i,
                                int64_t epoch,
                                const Augmentation& augmentation,
                                std::span<uint8_t> pixels) const {
  const int64_t image = i % size();
  if (!augmentation.changes_images()) return read(image, pixels);
  thread_local std::vector<uint8_t> original;
  original.resize(pixels.size());
  read(image, original);
  const CropFlip change = draw_crop_flip(augmentation, epoch, i);
  crop_flip(image_shape(), augmentation, change, original, pixels);
}

}  // namespace lockstep::data
