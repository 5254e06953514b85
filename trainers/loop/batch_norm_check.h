// Whether every step leaves batch normalization something to normalize.
#pragma once

#include <cstdint>

#include "trainers/config/run_config.h"
#include "trainers/loop/models.h"

namespace lockstep::trainers {

// A variance needs two values a channel: a group of one image is enough only where the network's
// maps stay larger than a pixel. Requires: a resolved config. Errors: UsageError with the numbers
// when a step of this run is smaller than that.
void check_batch_norm(const RunConfig& config, const ModelOptions& model, int64_t dataset_images);

}  // namespace lockstep::trainers
