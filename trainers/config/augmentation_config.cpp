#include "trainers/config/augmentation_config.h"

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "core/error.h"
#include "engine/settings/usual_images.h"

namespace lockstep::trainers {
namespace {

void check_erasing(const AugmentationConfig& asked, const std::string& name, int64_t side) {
  if (asked.cutout > 0 && asked.erase > 0) {
    throw UsageError("--cutout and --random-erase do not go together",
                     "an image has one box that is erased",
                     "leave one of them out");
  }
  if (asked.cutout <= side) return;
  throw UsageError(fmt::format("--cutout {} is too much", asked.cutout),
                   fmt::format("the shorter side of {} has {} pixels", name, side),
                   fmt::format("--cutout {} or less", side));
}

}  // namespace

Augmentation augmentation(const AugmentationConfig& asked,
                          uint64_t seed,
                          const data::Dataset& train) {
  Augmentation changes = usual_augmentation(train);
  changes.seed = seed;
  changes.flip = asked.flip.value_or(changes.flip);
  changes.pad = asked.crop_pad.value_or(changes.pad);
  changes.pad_mode = asked.pad_mode.value_or(changes.pad_mode);
  changes.trivial = asked.trivial;
  changes.bilinear = asked.bilinear;
  changes.rand = asked.rand;
  if ((changes.trivial || changes.rand.layers > 0) && !changes.resized_crop) {
    throw UsageError(
        "--auto-augment is for photos in class folders",
        fmt::format("it changes photos where they are decoded, and {} has none", train.name()),
        "leave it out");
  }
  if (changes.resized_crop && changes.pad > 0) {
    throw UsageError(
        "--crop-pad is for images of one size",
        fmt::format("{} has photos, and training sees a resized crop of each", train.name()),
        "leave it out");
  }
  if (asked.pad_mode && changes.pad == 0) {
    throw UsageError("--crop-pad-mode would change nothing",
                     fmt::format("no crop of {} reaches beyond its image", train.name()),
                     changes.resized_crop ? "leave it out" : "--crop-pad 4 beside it");
  }
  const data::ImageShape shape = train.image_shape();
  check_erasing(asked, train.name(), std::min(shape.height, shape.width));
  if (pad_fits(changes, shape.height, shape.width)) return changes;
  const int64_t max_pad =
      std::min(shape.height, shape.width) - (changes.pad_mode == PadMode::kReflect ? 1 : 0);
  throw UsageError(
      fmt::format("--crop-pad {} is too much", changes.pad),
      fmt::format("the images of {} are {}x{}", train.name(), shape.height, shape.width),
      fmt::format("--crop-pad {} or less", max_pad));
}

}  // namespace lockstep::trainers
