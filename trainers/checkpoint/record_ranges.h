// Ranges of the numbers in a checkpoint's record. The digest shows that a file is as it was
// written, not that Lockstep wrote it.
#pragma once

#include <cstdint>
#include <string>

#include "trainers/checkpoint/checkpoint_record.h"

namespace lockstep::trainers {

inline constexpr int64_t kMaxCounted = int64_t{1} << 53;  // beyond, doubles skip whole numbers

// Checks the numbers of a record. Errors: CheckpointError, naming `file`, the number and its range,
// for a number that no run has: it would divide by zero or overflow, or count work that was not
// done.
void check_ranges(const CheckpointRecord& record, const std::string& file);

// Errors: CheckpointError for a number of steps that does not lie in the current epoch.
void check_place(const TrainingPosition& position, int64_t steps_per_epoch);

}  // namespace lockstep::trainers
