// Ranges of the numbers in a checkpoint's record. A digest proves that a file is as it was written,
// not that a run of ours wrote it.
#pragma once

#include <cstdint>
#include <string>

#include "trainers/checkpoint/checkpoint_record.h"

namespace lockstep::trainers {

// Errors: CheckpointError, naming `file`, the number and what it may be, for numbers that no run
// has: they would divide by zero or overflow, or stand for work that was not done.
void check_ranges(const CheckpointRecord& record, const std::string& file);

// Errors: CheckpointError for a number of steps that does not lie in the epoch in hand.
void check_place(const TrainingPosition& at, int64_t steps_per_epoch);

}  // namespace lockstep::trainers
