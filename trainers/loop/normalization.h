// Mean and deviation that images are normalized with.
#pragma once

#include <optional>

#include "data/dataset.h"
#include "kernels/normalize_image.h"

namespace lockstep::trainers {

// What --normalize says: `asked`. For "dataset", which is nothing: as published for the data set,
// measured over its training images for shapes, ImageNet's for CIFAR-10, photos and synthetic color
// images; none (only division by 255) for a set of unknown statistics.
// Errors: UsageError for three means and images of another number of channels.
kernels::NormalizeImageParams normalization(
    const std::optional<kernels::NormalizeImageParams>& asked, const data::Dataset& dataset);

}  // namespace lockstep::trainers
