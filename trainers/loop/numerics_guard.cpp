#include "trainers/loop/numerics_guard.h"

#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "engine/step/training_batches.h"
#include "trainers/debug/numerics_report.h"
#include "trainers/report/console.h"

namespace lockstep::trainers {

NumericsGuard::NumericsGuard(const TrainingParts& parts, RunLog& log)
    : parts_(parts),
      log_(log),
      watch_({.when =
                  parts_.replay ? NumericsWatch::When::kEveryStep : NumericsWatch::When::kTenthSkip,
              .run_ranks = parts_.run_ranks(),
              .plan = batch_plan(
                  parts_.batch, parts_.settings.seeds.order, *parts_.data.train, parts_.ranks)},
             parts_.stream,
             parts_.model) {}

bool NumericsGuard::end_step(const ScaledStep& scaled, int64_t steps) {
  if (!watch_.end_step(scaled.scale, scaled.consecutive_skips)) return false;
  make_report(Trouble::kSkips,
              fmt::format("{} steps in a row were skipped", scaled.consecutive_skips),
              steps);
  return true;
}

void NumericsGuard::report_loss(float loss, int64_t step) {
  make_report(
      Trouble::kLoss, fmt::format("the loss is {}", std::isnan(loss) ? "nan" : "infinite"), step);
}

void NumericsGuard::make_report(Trouble trouble, std::string what, int64_t step) {
  report_ = watch_.report(parts_.ranks, trouble, std::move(what), step);
  if (watch_.listener() != nullptr) {
    for (const std::string& line : lines(*report_)) parts_.console.warn(line);
  }
  log_.write_numerics(to_json(*report_));
}

}  // namespace lockstep::trainers
