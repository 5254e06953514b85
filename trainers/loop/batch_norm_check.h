// Whether every step leaves batch normalization something to normalize.
#pragma once

#include <cstdint>
#include <optional>

#include "trainers/config/batch_division.h"
#include "trainers/loop/models.h"

namespace lockstep::trainers {

// A variance needs two values a channel: a group of one image is enough only where the network's
// maps stay larger than a pixel. Errors: UsageError with the numbers when a step of a run of at
// most `max_steps` is smaller than that.
void check_batch_norm(const BatchDivision& batch,
                      const std::optional<int64_t>& max_steps,
                      const ModelOptions& model,
                      int64_t dataset_images);

}  // namespace lockstep::trainers
