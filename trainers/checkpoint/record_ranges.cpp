#include "trainers/checkpoint/record_ranges.h"

#include <fmt/core.h>

#include "core/error.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {
namespace {

constexpr int64_t kMaxImages = 1'000'000'000'000;  // of a step

class Ranges {
 public:
  explicit Ranges(const std::string& file) : file_(file) {}

  void expect(const char* name, int64_t value, int64_t min, int64_t max) const {
    if (value >= min && value <= max) return;
    refuse(fmt::format("its '{}' is {}, expected {} to {}", name, value, min, max));
  }
  void expect_multiple(const char* name, int64_t value, const char* of, int64_t divisor) const {
    if (value % divisor == 0) return;
    refuse(fmt::format("its '{}' is {}, no multiple of {}, {}", name, value, of, divisor));
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw CheckpointError(fmt::format("cannot use {} as a checkpoint", file_), why, kAsWritten);
  }

  const std::string& file_;
};

void check_run(const RunIdentity& run, const Ranges& ranges) {
  ranges.expect("global_batch", run.global_batch, 1, kMaxImages);
  ranges.expect("micro_steps", run.micro_steps, 1, kMaxMicroSteps);
  ranges.expect("shards", run.shards, 1, kMaxShards);
  ranges.expect("bn_groups", run.bn_groups, 1, kMaxShards);
  ranges.expect("start_epoch", run.start_epoch, 0, kMaxEpochs);
  ranges.expect_multiple("shards", run.shards, "bn_groups", run.bn_groups);
  ranges.expect_multiple("global_batch",
                         run.global_batch,
                         "bn_groups times micro_steps",
                         run.bn_groups * run.micro_steps);
}

}  // namespace

void check_ranges(const CheckpointRecord& record, const std::string& file) {
  const Ranges ranges(file);
  const auto& [run, position, digest] = record;
  check_run(run, ranges);
  ranges.expect("steps", position.steps, 0, kMaxCounted);
  ranges.expect("applied_steps", position.applied, 0, position.steps);
  ranges.expect("epoch", position.epoch, run.start_epoch, kMaxEpochs);
  ranges.expect("epoch_sums.steps", position.sums.steps, 0, position.steps);
  ranges.expect("epoch_sums.images", position.sums.images, 0, kMaxCounted);
  ranges.expect("epoch_sums.correct1", position.sums.correct1, 0, position.sums.images);
  ranges.expect("epoch_sums.correct5", position.sums.correct5, 0, position.sums.images);
  ranges.expect("best.total", position.best.total, 0, kMaxCounted);
  ranges.expect("best.correct1", position.best.correct1, 0, position.best.total);
  ranges.expect("best.correct5", position.best.correct5, 0, position.best.total);
  ranges.expect("best_epoch", position.best_epoch, 0, kMaxEpochs);
}

void check_place(const TrainingPosition& position, int64_t steps_per_epoch) {
  const int64_t before = position.epoch * steps_per_epoch;
  if (position.sums.steps <= steps_per_epoch && position.steps == before + position.sums.steps)
    return;
  throw CheckpointError(
      "the checkpoint's place in its run makes no sense",
      fmt::format("it is after step {}, with {} steps of epoch {} done; an epoch has {} steps",
                  position.steps,
                  position.sums.steps,
                  position.epoch,
                  steps_per_epoch),
      kAsWritten);
}

}  // namespace lockstep::trainers
