// Changes to training images on their way to the network.
#pragma once

#include <cstdint>

#include "core/augmentation.h"
#include "kernels/image/normalize_image.h"

namespace lockstep {

struct ImageChanges {
  Augmentation augmentation = {};
  kernels::NormalizeImageParams normalize = {};  // of test images too
  double erase = 0;                              // the probability that a box of an image is erased
  int64_t cutout = 0;  // side of the square that is erased in each image; 0: none
  double mixup = 0;    // alpha; 0: none
  double cutmix = 0;   // alpha; 0: none; beside mixup, each micro-step has one of them

  bool erases() const { return erase > 0 || cutout > 0; }
  bool mixes() const { return mixup > 0 || cutmix > 0; }
};

}  // namespace lockstep
