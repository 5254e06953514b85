#include "trainers/loop/first_images.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/round_up.h"
#include "data/codecs/decode_image.h"
#include "engine/step/training_batches.h"
#include "trainers/loop/training_data.h"

namespace lockstep::trainers {
namespace {

constexpr int64_t kMaxImages = 64, kMaxPixels = 1 << 20;
constexpr int64_t kGap = 2;  // pixels around an image, as torchvision's make_grid has it

// Copies rows of an image into the picture, whose pixel at its left upper corner is (top, left).
void put(const data::ImageShape& shape,
         const std::vector<uint8_t>& pixels,
         int64_t top,
         int64_t left,
         Picture& picture) {
  const int64_t width = shape.width * shape.channels;
  for (int64_t row = 0; row < shape.height; ++row) {
    const int64_t to = ((top + row) * picture.width + left) * picture.channels;
    std::copy_n(pixels.begin() + row * width, width, picture.pixels.begin() + to);
  }
}

}  // namespace

std::optional<Picture> first_images(const TrainingParts& parts, const StepRange& range) {
  if (range.first >= range.end) return std::nullopt;
  const data::Dataset& images = *parts.data.train;
  const data::MicroBatch batch =
      data::training_sequence(
          batch_plan(parts.batch, parts.settings.seeds.order, images, parts.ranks),
          range.first,
          range.first + 1)
          .at(0);
  const data::ImageShape shape = images.training_shape(batch.epoch);
  const int64_t fitting = std::max<int64_t>(1, kMaxPixels / (shape.height * shape.width));
  const int64_t max_shown = std::min(kMaxImages, fitting);
  std::vector<std::vector<uint8_t>> shown;
  std::vector<uint8_t> pixels(static_cast<size_t>(shape.numel()));
  for (const int64_t i : batch.images) {
    if (std::ssize(shown) == max_shown) break;
    try {
      images.read_for_training(i, batch.epoch, parts.changes.augmentation, pixels);
      shown.push_back(pixels);
    } catch (const data::UnreadableImage&) {
      continue;  // the loader, which takes another one, says so
    }
  }
  if (shown.empty()) return std::nullopt;
  const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(std::ssize(shown))));
  const int64_t rows = ceil_div<int64_t>(std::ssize(shown), columns);
  const int64_t cell_height = shape.height + kGap;
  const int64_t cell_width = shape.width + kGap;
  Picture picture{.height = rows * cell_height + kGap,
                  .width = columns * cell_width + kGap,
                  .channels = shape.channels};
  picture.pixels.resize(static_cast<size_t>(picture.height * picture.width * picture.channels));
  for (int64_t i = 0; i < std::ssize(shown); ++i) {
    put(shape,
        shown[static_cast<size_t>(i)],
        i / columns * cell_height + kGap,
        i % columns * cell_width + kGap,
        picture);
  }
  return picture;
}

}  // namespace lockstep::trainers
