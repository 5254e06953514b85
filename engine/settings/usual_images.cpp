#include "engine/settings/usual_images.h"

#include <string>

namespace lockstep {

Augmentation usual_augmentation(const data::Dataset& train) {
  const std::string name = train.name();
  if (name.starts_with("imagefolder/")) return {.flip = Flip::kRandom, .resized_crop = true};
  if (!name.starts_with("cifar10/") && !name.starts_with("shapes/")) return {};
  return {.pad = 4, .flip = Flip::kRandom};
}

kernels::NormalizeImageParams usual_normalization(const data::Dataset& dataset) {
  const std::string name = dataset.name();
  if (name.starts_with("mnist/")) return {.mean = {0.1307F}, .std = {0.3081F}};
  if (name.starts_with("fashion-mnist/")) return {.mean = {0.2860F}, .std = {0.3530F}};
  if (name.starts_with("shapes/")) {
    return {.mean = {0.322F, 0.323F, 0.322F}, .std = {0.208F, 0.207F, 0.207F}};
  }
  const bool like_imagenet = name.starts_with("imagefolder/") ||
                             (name == "synthetic" && dataset.image_shape().channels == 3);
  if (like_imagenet || name.starts_with("cifar10/")) {
    return {.mean = {0.485F, 0.456F, 0.406F}, .std = {0.229F, 0.224F, 0.225F}};
  }
  return {};
}

}  // namespace lockstep
