// Mean and deviation that images are normalised with.
#pragma once

#include "data/dataset.h"
#include "kernels/normalize_image.h"
#include "trainers/config/run_config.h"

namespace lockstep::trainers {

// As published for the data set, measured over its training images for shapes, ImageNet's for
// CIFAR-10 and synthetic colour images; none (only division by 255) under a tutorial's preset or
// for a set of unknown statistics.
kernels::NormalizeImageParams normalization(const RunConfig& config, const data::Dataset& dataset);

}  // namespace lockstep::trainers
