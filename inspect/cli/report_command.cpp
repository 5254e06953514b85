#include "inspect/cli/report_command.h"

#include <filesystem>

#include <fmt/core.h>

#include "core/atomic_file.h"
#include "trainers/config/run_files.h"
#include "trainers/page/report_page.h"
#include "trainers/report/run_directory.h"

namespace lockstep::trainers {

std::string run_report(const std::vector<std::string>& directories, const std::string& file) {
  std::vector<ViewedRun> runs = view_runs(directories);
  if (runs.size() == 1) add_trace(runs.front());
  std::filesystem::path page = file;
  if (file.empty()) {
    page = runs.size() == 1 ? runs.front().directory / kReportFile
                            : std::filesystem::path(kReportFile);
  }
  write_file_atomically(page, report_page(runs));
  return fmt::format("report  {} (any browser)\n", page.string());
}

}  // namespace lockstep::trainers
