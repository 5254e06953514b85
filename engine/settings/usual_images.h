// Changes that images of well-known data sets get where nothing else is asked for.
#pragma once

#include "core/augmentation.h"
#include "data/dataset.h"
#include "kernels/image/normalize_image.h"

namespace lockstep {

// CIFAR-10 and shapes get a crop out of the image padded by 4, and a flip; photos get a resized
// crop and a flip; all others get nothing.
Augmentation usual_augmentation(const data::Dataset& train);

// The constants published for the data set; measured over the training images for shapes;
// ImageNet's for CIFAR-10, photos and synthetic color images; none (only division by 255) for a
// data set of unknown statistics.
kernels::NormalizeImageParams usual_normalization(const data::Dataset& dataset);

}  // namespace lockstep
