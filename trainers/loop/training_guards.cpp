#include "trainers/loop/training_guards.h"

#include <cmath>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "core/error.h"
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

void NumericsGuard::read_scale(WeightUpdate& update, int64_t steps) {
  scaled_ = update.read_scale(steps);
  if (const auto& scaling = parts_.settings.precision.loss_scaling;
      scaling && scaled_.newly_skipped > 0) {
    parts_.console.info(overflow_line(scaling->dynamic, scaled_.scale));
  }
  if (!watch_.end_step(scaled_.scale, scaled_.consecutive_skips)) return;
  make_report(Trouble::kSkips,
              fmt::format("{} steps in a row were skipped", scaled_.consecutive_skips),
              steps);
}

void NumericsGuard::check_losses(const WindowTotals& totals, int64_t steps, int epoch, double lr) {
  for (size_t i = 0; i < totals.losses.size(); ++i) {
    if (std::isfinite(totals.losses[i])) continue;
    const int64_t step = steps - std::ssize(totals.losses) + static_cast<int64_t>(i) + 1;
    const std::string what =
        fmt::format("the loss is {}", std::isnan(totals.losses[i]) ? "nan" : "infinite");
    make_report(Trouble::kLoss, what, step);
    if (parts_.replay) return;
    throw DivergedError(
        fmt::format("{} at step {} (epoch {})", what, step, epoch + 1),
        fmt::format("training diverged at learning rate {:g}, or an input is not finite", lr),
        fmt::format("a smaller --lr; `lockstep replay {}` names the tensor that it began in",
                    parts_.run.output_dir));
  }
}

void NumericsGuard::make_report(Trouble trouble, std::string what, int64_t step) {
  report_ = watch_.report(parts_.ranks, trouble, std::move(what), step);
  if (watch_.listener() != nullptr) {
    for (const std::string& line : lines(*report_)) parts_.console.warn(line);
  }
  log_.write_numerics(to_json(*report_));
}

ReplicaCheck::ReplicaCheck(const nn::Module& model, const nn::Optimizer& optimizer) {
  for (const nn::StateEntry& entry : model.state()) {
    if (entry.is_parameter) tensors_.push_back({entry.name, entry.tensor});
  }
  std::set<std::string> own;  // of each rank: it follows what batch norm counts there
  for (const nn::StateEntry& entry : optimizer.state_of_buffers()) own.insert(entry.name);
  for (const nn::StateEntry& entry : optimizer.state()) {
    if (!own.contains(entry.name)) tensors_.push_back({entry.name, entry.tensor});
  }
}

void ReplicaCheck::compare(Communicator& ranks, int64_t step) const {
  const auto difference = comm::audit_replicas(ranks, tensors_);
  if (!difference) return;
  throw DivergedError(
      fmt::format(
          "ranks hold different weights after step {}: {}", step, comm::to_string(*difference)),
      "replicas must stay equal bit for bit: memory or a transfer was corrupted, "
      "or a rank computes differently",
      "run again; if the same rank differs again, leave its host out");
}

}  // namespace lockstep::trainers
