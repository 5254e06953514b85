// Shows the images that a training starts with.
#pragma once

#include <optional>

#include "trainers/loop/training_parts.h"
#include "trainers/report/event_file.h"

namespace lockstep::trainers {

// Returns the first images of this rank's first batch in this process, as the network sees them
// before they are normalized, side by side on black: at most 64 images and a million pixels.
// Returns nothing where the run has no step left or none of the images can be read.
std::optional<Picture> first_images(const TrainingParts& parts, const StepRange& range);

}  // namespace lockstep::trainers
