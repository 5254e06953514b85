// Writes the report at the end of a run.
#pragma once

#include <filesystem>

#include "data/dataset.h"
#include "trainers/report/console.h"
#include "trainers/report/mistakes.h"

namespace lockstep::trainers {

// On rank 0, writes mistakes.json, where the run was evaluated, and report.html, and prints where
// the report is. A failure is only a warning. `images` are those of the evaluation.
void write_final_report(const std::filesystem::path& directory,
                        Mistakes mistakes,
                        const data::Dataset& images,
                        Console& console);

}  // namespace lockstep::trainers
