// What --lr-dry-run prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/config/batch_division.h"

namespace lockstep::trainers {

// The learning rate of each step of the run where they are few, else of each epoch's first and last
// step. Epochs count from 0, steps from 1, as in log lines.
std::vector<std::string> lr_lines(const RunRequest& request,
                                  const BatchDivision& batch,
                                  int64_t dataset_images);

}  // namespace lockstep::trainers
