#include "trainers/cli/run_console.h"

namespace lockstep::trainers {
namespace {

TutorialLines tutorial_lines(const RunRequest& request) {
  if (request.preset.starts_with("demo-")) return TutorialLines::kDemo;
  return request.tricks_lines ? TutorialLines::kTricks : TutorialLines::kNone;
}

}  // namespace

Console make_console(const Job& job) {
  const RunRequest& request = job.request;
  const bool only_prints = request.lr_dry_run || request.explain_precision;
  return Console(
      {.prints = job.ranks.rank() == 0,
       .quiet = request.quiet,
       .tutorial = only_prints ? TutorialLines::kNone : tutorial_lines(request),
       .progress = choose_progress(request.progress, job.launch.launcher != comm::Launcher::kNone),
       .json = request.json && !only_prints});
}

ExitCode print_all(const std::vector<std::string>& lines, Console& console, Communicator& ranks) {
  for (const std::string& line : lines) console.result(line);
  ranks.barrier();
  return ExitCode::kDone;
}

}  // namespace lockstep::trainers
