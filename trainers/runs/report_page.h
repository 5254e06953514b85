// report.html: a run, or several laid over each other, on one page that needs nothing but itself.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "trainers/runs/viewed_run.h"

namespace lockstep::trainers {

// The page as HTML. Requires: at least one run.
std::string report_page(std::span<const ViewedRun> runs);

// Writes the report of a run directory's files into it. Errors: those of view_run() and of
// write_file_atomically().
void write_report(const std::filesystem::path& directory);

}  // namespace lockstep::trainers
