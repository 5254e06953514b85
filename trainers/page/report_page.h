// report.html: a run, or several in one chart each, on one self-contained page.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "trainers/page/viewed_run.h"

namespace lockstep::trainers {

// Returns the page as HTML. Requires: at least one run.
std::string report_page(std::span<const ViewedRun> runs);

// Writes the report of a run directory's files into it. Errors: those of view_run() and of
// write_file_atomically().
void write_report(const std::filesystem::path& directory);

}  // namespace lockstep::trainers
