// The output of --lr-dry-run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/config/run_config.h"

namespace lockstep::trainers {

// The learning rate of each step of the run where they are few, else of each epoch's first and last
// step. Epochs count from 0, steps from 1, as in log lines. Requires: resolve_run().
std::vector<std::string> lr_lines(const RunConfig& config, int64_t dataset_images);

}  // namespace lockstep::trainers
