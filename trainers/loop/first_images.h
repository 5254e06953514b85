// A look at the images that a training begins with.
#pragma once

#include <optional>

#include "trainers/loop/training_parts.h"
#include "trainers/report/event_values.h"

namespace lockstep::trainers {

// The first images of this rank's first batch in this process as the network sees them before they
// are normalized, side by side on black: at most 64 and a million pixels. Nothing where the run has
// no step left or none of them can be read.
std::optional<Picture> first_images(const TrainingParts& parts, const StepRange& range);

}  // namespace lockstep::trainers
