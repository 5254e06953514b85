#include "data/dataset.h"

#include <vector>

#include "data/augment.h"

namespace lockstep::data {

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
