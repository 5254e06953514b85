#include "engine/check_options.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "core/error.h"
#include "core/shards.h"
#include "core/thread_pool.h"
#include "data/loader.h"

namespace lockstep {
namespace {

constexpr double kMillion = 1e6, kBillion = 1e9;
constexpr double kMostRate = 1000;

[[noreturn]] void refuse(const char* name, double value, const std::string& required) {
  throw UsageError(fmt::format("{} is {:g}", name, value), "it is out of range", required);
}

void check_whole(const char* name, int64_t value, int64_t least, double most) {
  const auto number = static_cast<double>(value);
  if (value >= least && number <= most) return;
  refuse(name, number, fmt::format("a whole number from {} to {:.10g}", least, most));
}

// Less than the smallest normal number is 0 in f32, or not exact.
void check_number(const char* name, double value, double least, double most) {
  const bool is_tiny = value != 0 && std::abs(value) < std::numeric_limits<float>::min();
  if (value >= least && value <= most && !is_tiny) return;
  refuse(name,
         value,
         fmt::format("{}a number from {:g} to {:g}", is_tiny ? "0, or " : "", least, most));
}

void check_optimizer(const OptimizerOptions& optimizer) {
  check_number("optimizer.lr", optimizer.lr, 0, kMostRate);
  check_number("optimizer.momentum", optimizer.momentum, 0, 1);
  check_number("optimizer.weight_decay", optimizer.weight_decay, 0, kMostRate);
  check_number("optimizer.clip_grad_norm", optimizer.clip_grad_norm, 0, kBillion);
  check_number("optimizer.ema", optimizer.ema, 0, 1);
  if (optimizer.nesterov && optimizer.kind == OptimizerKind::kSgd && optimizer.momentum == 0) {
    refuse("optimizer.momentum", 0, "a number above 0 with nesterov");
  }
  if (optimizer.larc) {
    check_number(
        "optimizer.larc.trust_coefficient", optimizer.larc->trust_coefficient, 0, kMostRate);
  }
  if (optimizer.lookahead) {
    check_whole("optimizer.lookahead.k", optimizer.lookahead->k, 1, kMillion);
    check_number("optimizer.lookahead.alpha", optimizer.lookahead->alpha, 0, 1);
  }
}

void check_schedule(const ScheduleOptions& schedule) {
  check_whole("schedule.step_epochs", schedule.step_epochs, 1, kBillion);
  check_number("schedule.gamma", schedule.gamma, 0, 1);
  check_number("schedule.power", schedule.power, 0, kMostRate);
  check_number("schedule.min_factor", schedule.min_factor, 0, 1);
  check_whole("schedule.warmup_epochs", schedule.warmup_epochs, 0, kMillion);
  check_number("schedule.warmup.decay", schedule.warmup.decay, 0, 1);
  check_number("schedule.one_cycle.pct_start", schedule.one_cycle.pct_start, 0, 1);
  check_number("schedule.one_cycle.div", schedule.one_cycle.div, 1, kBillion);
  check_number("schedule.one_cycle.final_div", schedule.one_cycle.final_div, 1, kBillion);
  check_number("schedule.triangular.start", schedule.triangular.start, 0, 1);
  check_number("schedule.triangular.peak", schedule.triangular.peak, 0, 1);
  check_number("schedule.triangular.end", schedule.triangular.end, 0, 1);
  check_whole("schedule.plateau.patience", schedule.plateau.patience, 0, kBillion);
  check_number("schedule.plateau.threshold", schedule.plateau.threshold, 0, 1);
  int64_t before = 0;
  for (const int64_t milestone : schedule.milestones) {
    if (milestone <= before) {
      refuse("schedule.milestones",
             static_cast<double>(milestone),
             "epochs in ascending order, from 1");
    }
    before = milestone;
  }
}

}  // namespace

void check_ranges(const TrainerOptions& options) {
  check_whole("batch", options.batch, 1, kBillion);
  check_whole("test_batch", options.test_batch, 1, kMillion);
  check_whole("epochs", options.epochs, 1, kMillion);
  check_whole("rank.threads", options.rank.threads, 1, kMaxThreads);
  check_whole("rank.workers", options.rank.workers, 0, data::kMaxWorkers);
  check_whole("shards", options.shards.value_or(1), 1, kMaxShards);
  check_whole("batch_norm_groups", options.batch_norm_groups.value_or(1), 1, kMaxShards);
  check_optimizer(options.optimizer);
  check_schedule(options.schedule);
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1)) {
    refuse("label_smoothing", options.label_smoothing, "a number from 0 to below 1");
  }
  if (options.precision.level < 0 || options.precision.level > 3) {
    throw UsageError(fmt::format("precision.level {} does not exist", options.precision.level),
                     "levels are Apex's O0 to O3",
                     "a number from 0 to 3");
  }
  if (options.precision.half != Dtype::kF16 && options.precision.half != Dtype::kBF16) {
    throw UsageError(
        "precision.half is not a 16-bit type", "activations are kept in it", "kF16 or kBF16");
  }
}

}  // namespace lockstep
