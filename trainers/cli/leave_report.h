// The end of a run, for those who look at it.
#pragma once

#include <filesystem>

#include "data/dataset.h"
#include "trainers/report/console.h"
#include "trainers/report/mistakes.h"

namespace lockstep::trainers {

// Rank 0's: writes mistakes.json, where the run was evaluated, and report.html, and prints where
// the report is. It fails no run: what goes wrong is a warning. `images`: those of the evaluation.
void leave_report(const std::filesystem::path& directory,
                  Mistakes mistakes,
                  const data::Dataset& images,
                  Console& console);

}  // namespace lockstep::trainers
