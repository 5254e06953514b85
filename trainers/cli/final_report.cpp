#include "trainers/cli/final_report.h"

#include <fmt/core.h>

#include "core/atomic_file.h"
#include "core/error.h"
#include "trainers/config/run_files.h"
#include "trainers/loop/find_mistakes.h"
#include "trainers/page/report_page.h"
#include "trainers/report/run_directory.h"

namespace lockstep::trainers {

void write_final_report(const std::filesystem::path& directory,
                        Mistakes mistakes,
                        const data::Dataset& images,
                        Console& console) {
  try {
    if (!mistakes.digest.empty()) {
      add_pictures(images, mistakes);
      write_file_atomically(directory / kMistakesFile, to_json(mistakes));
    }
    write_report(directory);
    console.result(fmt::format("report  {}/{} (any browser)", directory.string(), kReportFile));
  } catch (const Error& error) {
    console.warn(fmt::format("lockstep: warning: there is no report: {}\n  why: {}\n  try: {}",
                             error.what(),
                             error.why(),
                             advice_of(error)));
  }
}

}  // namespace lockstep::trainers
