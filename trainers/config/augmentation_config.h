// Random changes to training images and the normalization of all: what a run asks for, and what
// that means for a data set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/augmentation.h"
#include "data/dataset.h"
#include "kernels/image/normalize_image.h"

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
  double cutmix = 0;   // alpha; 0: none; beside mixup, each micro-step has one of them

  bool erases() const { return erase > 0 || cutout > 0; }
  bool mixes() const { return mixup > 0 || cutmix > 0; }
};

// Fills in the defaults where nothing is asked for: CIFAR-10 and shapes get a crop out of the image
// padded by 4, and a flip; photos get a resized crop and a flip; all others get nothing. Errors:
// UsageError where what is asked for does not fit the images.
Augmentation augmentation(const AugmentationConfig& asked,
                          uint64_t seed,
                          const data::Dataset& train);

// Formats the constants: "none", or means, then deviations, as in "0.1307,0.3081" and
// "0.485,0.456,0.406,0.229,0.224,0.225". Parsing the text gives the same floats.
std::string normalize_text(const kernels::NormalizeImageParams& params);

// Returns nothing for "dataset": the constants then depend on the data. Errors: UsageError for text
// that is neither "dataset" nor "none" nor 2 or 6 finite numbers with deviations above 0.
std::optional<kernels::NormalizeImageParams> parse_normalize(const std::string& text);

// Returns the constants that --normalize asks for: `asked`, which is absent for "dataset". Then
// they are those published for the data set; measured over the training images for shapes;
// ImageNet's for CIFAR-10, photos and synthetic color images; and none (only division by 255) for a
// data set of unknown statistics.
// Errors: UsageError for three means and images of another number of channels.
kernels::NormalizeImageParams normalization(
    const std::optional<kernels::NormalizeImageParams>& asked, const data::Dataset& dataset);

}  // namespace lockstep::trainers
