#include "engine/check_options.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "core/error.h"
#include "core/shards.h"
#include "core/thread_pool.h"
#include "data/loader.h"
#include "engine/settings/ranges.h"
#include "engine/update/schedule_rows.h"

namespace lockstep {
namespace {

using ranges::kFrom0;
using ranges::kFrom1;
using ranges::kRates;
using ranges::kUnit;

[[noreturn]] void refuse(const std::string& name, double value, const std::string& required) {
  throw UsageError(fmt::format("{} is {:g}", name, value), "it is out of range", required);
}

void check_whole(const std::string& name, double value, const NumberRange& range) {
  if (value >= range.min && value <= range.max) return;
  refuse(name, value, fmt::format("a whole number from {:.10g} to {:.10g}", range.min, range.max));
}

void check_count(const std::string& name, int64_t value, const NumberRange& range) {
  check_whole(name, static_cast<double>(value), range);
}

void check_number(const std::string& name, double value, const NumberRange& range) {
  const bool tiny = is_tiny(value);
  if (value >= range.min && value <= range.max && !tiny) return;
  refuse(name,
         value,
         fmt::format("{}a number from {:g} to {:g}", tiny ? "0, or " : "", range.min, range.max));
}

void check_optimizer(const OptimizerOptions& optimizer) {
  check_number("optimizer.lr", optimizer.lr, kRates);
  check_number("optimizer.momentum", optimizer.momentum, kUnit);
  check_number("optimizer.weight_decay", optimizer.weight_decay, kRates);
  check_number("optimizer.clip_grad_norm", optimizer.clip_grad_norm, kFrom0);
  check_number("optimizer.ema", optimizer.ema, kUnit);
  if (optimizer.nesterov && optimizer.kind == OptimizerKind::kSgd && optimizer.momentum == 0) {
    refuse("optimizer.momentum", 0, "a number above 0 with nesterov");
  }
  if (optimizer.larc) {
    check_number("optimizer.larc.trust_coefficient", optimizer.larc->trust_coefficient, kRates);
  }
  if (optimizer.lookahead) {
    check_count("optimizer.lookahead.k", optimizer.lookahead->k, {1, ranges::kMillion});
    check_number("optimizer.lookahead.alpha", optimizer.lookahead->alpha, kUnit);
  }
}

void check_schedule(const ScheduleOptions& schedule) {
  const auto spelled = [](std::string_view member) { return fmt::format("schedule.{}", member); };
  for (const ScheduleMember& member : schedule_members()) {
    const auto check = member.is_whole ? check_whole : check_number;
    check(spelled(member.name), member.value(schedule), member.range);
  }
  int64_t before = 0;
  for (const int64_t milestone : schedule.milestones) {
    if (milestone <= before) {
      refuse("schedule.milestones",
             static_cast<double>(milestone),
             "epochs in ascending order, from 1");
    }
    before = milestone;
  }
  check_fits(schedule, spelled);
}

}  // namespace

void check_ranges(const TrainerOptions& options) {
  check_count("batch", options.batch, kFrom1);
  check_count("test_batch", options.test_batch, {1, ranges::kMillion});
  check_count("epochs", options.epochs, {1, kMaxEpochs});
  check_count("rank.threads", options.rank.threads, {1, kMaxThreads});
  check_count("rank.workers", options.rank.workers, {0, data::kMaxWorkers});
  check_count("shards", options.shards.value_or(1), {1, kMaxShards});
  check_count("batch_norm_groups", options.batch_norm_groups.value_or(1), {1, kMaxShards});
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
