// Random changes to training images: what a run asks for, and what that means for a data set.
#pragma once

#include <cstdint>
#include <optional>

#include "core/augmentation.h"
#include "data/dataset.h"

namespace lockstep::trainers {

struct AugmentationConfig {
  // Absent: the data set's default.
  std::optional<Flip> flip = {};
  std::optional<int64_t> crop_pad = {};
  std::optional<PadMode> pad_mode = {};

  bool trivial = false;   // torchvision's TrivialAugmentWide
  bool bilinear = false;  // interpolation of TrivialAugmentWide, as in its references; else NEAREST
  RandAugment rand = {};

  double erase = 0;    // the probability that a box of an image is erased
  int64_t cutout = 0;  // side of the square that is erased in each image; 0: none
  double mixup = 0;    // alpha; 0: none
  double cutmix = 0;   // likewise; beside mixup, each micro-step has one of them

  bool erases() const { return erase > 0 || cutout > 0; }
  bool mixes() const { return mixup > 0 || cutmix > 0; }
};

// Fills in the defaults where nothing is asked for: CIFAR-10 and shapes get a crop out of the image
// padded by 4, and a flip; photos get a resized crop and a flip; all others get nothing. Errors:
// UsageError where what is asked for does not fit the images.
Augmentation augmentation(const AugmentationConfig& asked,
                          uint64_t seed,
                          const data::Dataset& train);

}  // namespace lockstep::trainers
