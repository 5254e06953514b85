#include "trainers/planner/settle_engines.h"

#include <algorithm>
#include <system_error>

#include <fmt/core.h>

#include "core/printable.h"
#include "trainers/report/agree.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

// What `file` holds, where that is of use.
PlanFile known_plans(const fs::path& file,
                     const PlanOrigin& here,
                     bool may_replace,
                     std::string& note) {
  std::error_code error;
  PlanFile fresh{.origin = here, .engines = {}};
  if (may_replace && !fs::exists(file, error)) return fresh;
  PlanFile plans = read_plans(file);
  if (may_replace && plans.origin != here) {
    note = fmt::format("note: {} was of cuDNN {} on {}: its engines are timed anew",
                       file.string(),
                       printable(plans.origin.cudnn),
                       printable(plans.origin.card));
    return fresh;
  }
  check_origin(plans, here, file.string());
  return plans;
}

}  // namespace

std::vector<kernels::ConvolutionProblem> fused_layers(
    std::span<const kernels::ConvolutionProblem> problems, const PlannedEngines& engines) {
  const auto pays = [&](const kernels::ConvolutionProblem& problem) {
    const auto found = engines.find(problem.text());
    return found != engines.end() && found->second.is_there();
  };
  std::vector<kernels::ConvolutionProblem> forms;
  for (const kernels::ConvolutionProblem& form : problems) {
    if (!form.is_fused()) continue;
    const bool everywhere = std::ranges::all_of(problems, [&](kernels::ConvolutionProblem other) {
      const bool other_pays = pays(other);
      other.in = {form.in[0], other.in[1], other.in[2], other.in[3]};
      return other_pays || !(other.key() == form.key());
    });
    if (everywhere) forms.push_back(form);
  }
  return forms;
}

std::string SettledEngines::line(const fs::path& file) const {
  const int64_t by_rule = convolutions - std::ssize(engines);
  std::string text = fmt::format(
      "cuDNN's engines: {} of {} convolutions by {}", engines.size(), convolutions, file.string());
  if (timed > 0) text += fmt::format(", {} of them timed now", timed);
  if (by_rule > 0) text += fmt::format(", {} by rule", by_rule);
  if (fused > 0) text += fmt::format(", {} fused with batch norms", fused);
  return text;
}

SettledEngines settle_engines(Communicator& ranks,
                              const fs::path& file,
                              const PlanOrigin& here,
                              std::span<const kernels::ConvolutionProblem> problems,
                              const TuneEngine& tune) {
  SettledEngines settled{.convolutions = std::ssize(problems)};
  const bool chooses = ranks.rank() == 0;
  on_all_ranks(ranks, [&] {
    if (chooses) settled.plans = known_plans(file, here, static_cast<bool>(tune), settled.note);
  });
  PlannedEngines& known = settled.plans.engines;
  PlanFile of_run{.origin = here, .engines = {}};
  for (const kernels::ConvolutionProblem& problem : problems) {
    on_all_ranks(ranks, [&] {
      if (!chooses) return;
      const std::string name = problem.text();
      if (tune && !known.contains(name)) {
        known[name] = tune(problem, known);
        ++settled.timed;
      }
      if (known.contains(name)) of_run.engines[name] = known[name];
    });
  }
  settled.engines = parse_plans(broadcast_text(ranks, to_json(of_run)), "rank 0's plans").engines;
  settled.fused = std::ranges::count_if(fused_layers(problems, settled.engines),
                                        &kernels::ConvolutionProblem::gives_sums);
  return settled;
}

}  // namespace lockstep::trainers
