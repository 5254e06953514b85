// Mean and deviation that images are normalized with.
#pragma once

#include "data/dataset.h"
#include "kernels/normalize_image.h"
#include "trainers/config/run_config.h"

namespace lockstep::trainers {

// Returns the constants of --normalize. "dataset" takes the published ones: those of the data set,
// for shapes those of its training images, for CIFAR-10, photos and synthetic color images
// ImageNet's, and none (only division by 255) for a set of unknown statistics. Errors: UsageError
// for three means and images of another number of channels.
kernels::NormalizeImageParams normalization(const RunConfig& config, const data::Dataset& dataset);

}  // namespace lockstep::trainers
