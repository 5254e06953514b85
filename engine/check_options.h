// Checks the options of a training before it begins.
#pragma once

#include "engine/trainer.h"

namespace lockstep {

// Errors: UsageError naming the first option that is out of its range, with the range.
void check_ranges(const TrainerOptions& options);

}  // namespace lockstep
