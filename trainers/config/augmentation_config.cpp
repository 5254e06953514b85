#include "trainers/config/augmentation_config.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "core/error.h"
#include "trainers/config/choice_names.h"

namespace lockstep::trainers {
namespace {

constexpr std::array kFlips = {std::pair{Flip::kNone, "none"},
                               std::pair{Flip::kRandom, "random"},
                               std::pair{Flip::kAlternating, "alternating"}};
constexpr std::array kPadModes = {std::pair{PadMode::kZero, "zero"},
                                  std::pair{PadMode::kReflect, "reflect"}};

template <class Names>
auto meant_if_given(const Names& names, const Options& options, const char* flag) {
  const Setting* const setting = options.find(flag);
  return setting == nullptr ? std::nullopt : std::optional(meant(names, setting->value));
}

Augmentation usual_changes(const data::Dataset& train) {
  const std::string name = train.name();
  if (name.starts_with("imagefolder/")) return {.flip = Flip::kRandom, .resized_crop = true};
  if (!name.starts_with("cifar10/") && !name.starts_with("shapes/")) return {};
  return {.pad = 4, .flip = Flip::kRandom};
}

}  // namespace

AugmentationConfig make_augmentation_config(const Options& options) {
  const Setting* const automatic = options.find("auto-augment");  // train_resnet's
  return {.flip = meant_if_given(kFlips, options, "flip"),
          .crop_pad = options.maybe_integer("crop-pad"),
          .pad_mode = meant_if_given(kPadModes, options, "crop-pad-mode"),
          .trivial = automatic != nullptr && automatic->value == "ta_wide",
          .erase = options.number("random-erase"),
          .mixup = options.number("mixup"),
          .cutmix = options.number("cutmix")};
}

Augmentation augmentation(const AugmentationConfig& asked,
                          uint64_t seed,
                          const data::Dataset& train) {
  Augmentation changes = usual_changes(train);
  changes.seed = seed;
  changes.flip = asked.flip.value_or(changes.flip);
  changes.pad = asked.crop_pad.value_or(changes.pad);
  changes.pad_mode = asked.pad_mode.value_or(changes.pad_mode);
  changes.trivial = asked.trivial;
  if (changes.trivial && !changes.resized_crop) {
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
  if (pad_fits(changes, shape.height, shape.width)) return changes;
  const int64_t most =
      std::min(shape.height, shape.width) - (changes.pad_mode == PadMode::kReflect ? 1 : 0);
  throw UsageError(
      fmt::format("--crop-pad {} is too much", changes.pad),
      fmt::format("the images of {} are {}x{}", train.name(), shape.height, shape.width),
      fmt::format("--crop-pad {} or less", most));
}

}  // namespace lockstep::trainers
