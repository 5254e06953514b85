#include "trainers/report/flag_advice.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "core/dtype.h"
#include "core/error.h"
#include "core/words.h"

namespace lockstep::trainers {
namespace {

using Advice = std::optional<std::string>;

Advice on_warmup(const RunRequest& request) {
  const int64_t warmup = request.schedule.warmup_epochs;
  if (warmup == 0 || warmup < request.epoch_count()) return std::nullopt;
  return fmt::format(
      "--warmup-epochs {} take up the whole run of --epochs {:g}: its rate never stays at --lr",
      warmup,
      request.epochs);
}

// Old networks without batch norm, for which main.py's README recommends 0.01.
Advice on_rate(const RunRequest& request, const BatchDivision& batch) {
  constexpr double kTooHigh = 0.1;
  const bool wants_less = request.arch.starts_with("vgg") || request.arch == "alexnet";
  const OptimizerOptions& optimizer = request.optimizer;
  const double lr = optimizer.base_lr(batch.images);
  if (!wants_less || optimizer.kind != OptimizerKind::kSgd || lr < kTooHigh) return std::nullopt;
  return fmt::format("{} seldom learns at a rate of {:g}: --lr 0.01", request.arch, lr);
}

// Tensor cores process 16-bit matrices in multiples of eight.
Advice on_batch(const RunRequest& request) {
  constexpr int64_t kMultiple = 8;
  const int64_t images = request.batch.per_rank.value_or(0);
  const bool may_be_16_bit = request.precision.is_mixed() || request.main_py_lines;
  if (!may_be_16_bit || images < kMultiple || images % kMultiple == 0) return std::nullopt;
  return fmt::format("-b {} is not a multiple of 8, fastest for 16-bit products on GPUs: -b {}",
                     images,
                     (images + kMultiple / 2) / kMultiple * kMultiple);
}

Advice on_workers(const RunRequest& request, const HostShare& host) {
  const int64_t workers = request.workers * host.ranks_on_host;
  const int64_t cores = std::min(host.host_cores, host.affinity_cores * host.ranks_on_host);
  constexpr int64_t kUsual = 2;  // sleeps most of the time, however few cores there are
  if (request.workers <= kUsual || workers <= cores) return std::nullopt;
  return fmt::format("-j {} on {} makes {} loader threads on {}: -j {}",
                     request.workers,
                     counted(host.ranks_on_host, "rank"),
                     workers,
                     counted(cores, "core"),
                     std::max(int64_t{1}, cores / host.ranks_on_host));
}

Advice on_plateau(const RunRequest& request) {
  const ScheduleOptions& schedule = request.schedule;
  const PlateauOptions& plateau = schedule.plateau;
  const bool follows = plateau.upwards == plateau.on_accuracy;
  if (schedule.kind != ScheduleKind::kPlateau || follows) return std::nullopt;
  return fmt::format(
      "--plateau-on {} improves {}wards, and --plateau-mode {} cuts the rate because it does: "
      "--plateau-mode {}",
      plateau.on_accuracy ? "acc" : "loss",
      plateau.on_accuracy ? "up" : "down",
      plateau.upwards ? "max" : "min",
      plateau.upwards ? "min" : "max");
}

Advice on_mixing(const RunRequest& request, const BatchDivision& batch, int64_t dataset_images) {
  if (!request.augmentation.mixes()) return std::nullopt;
  const Mixing mixing = mixing_of(batch, dataset_images);
  if (mixing.unmixed == 0) return std::nullopt;
  std::string text = fmt::format(
      "{} of the {} images of a step stay unmixed, in the middle of shards with an odd number",
      mixing.unmixed,
      mixing.images);
  if (mixing.better_shards > 0) text += fmt::format(": --shards {}", mixing.better_shards);
  return text;
}

// A cut takes one bad epoch more than its patience, and an epoch at the new rate.
Advice on_early_stopping(const RunRequest& request) {
  const ScheduleOptions& schedule = request.schedule;
  const PlateauOptions& plateau = schedule.plateau;
  const int64_t least = plateau.patience + 2;
  const int64_t patience = request.early_stopping.patience;
  const bool watch_the_same =
      schedule.kind == ScheduleKind::kPlateau && !plateau.on_accuracy && !plateau.upwards;
  if (!watch_the_same || patience == 0 || patience >= least) return std::nullopt;
  return fmt::format(
      "--early-stopping {} ends a training whose loss rises before --plateau-patience {} cuts the "
      "rate: --early-stopping {}",
      patience,
      plateau.patience,
      least);
}

}  // namespace

void check_mixing(const RunRequest& request, const BatchDivision& batch, int64_t dataset_images) {
  if (!request.augmentation.mixes()) return;
  const Mixing mixing = mixing_of(batch, dataset_images);
  if (mixing.unmixed < mixing.images) return;
  throw UsageError(
      fmt::format("{} would change nothing",
                  request.augmentation.mixup > 0 ? "--mixup" : "--cutmix"),
      fmt::format(
          "images of a shard are mixed, and {} images per step in {} shards are one in each",
          mixing.images,
          batch.micro_steps * batch.shards),
      "fewer --shards, or more images per step");
}

std::vector<std::string> run_advice(const RunRequest& request,
                                    const BatchDivision& batch,
                                    int64_t dataset_images,
                                    const HostShare& host) {
  std::vector<std::string> lines;
  for (const Advice& advice : {on_warmup(request),
                               on_rate(request, batch),
                               on_batch(request),
                               on_workers(request, host),
                               on_plateau(request),
                               on_early_stopping(request),
                               on_mixing(request, batch, dataset_images)}) {
    if (advice) lines.push_back("lockstep: warning: " + *advice);
  }
  return lines;
}

std::vector<std::string> notes_on(const PrecisionConfig& config, int64_t images, bool native_bf16) {
  std::vector<std::string> notes;
  if (!config.is_mixed()) return notes;
  if (config.dtype == Dtype::kF16 || !native_bf16) {
    notes.push_back(
        fmt::format("note: this processor has no {} arithmetic: it computes in f32 and rounds, "
                    "which is slower{}",
                    name_of(config.dtype),
                    native_bf16 ? " than --dtype bf16" : " than --opt-level O0"));
  }
  if (images % 8 != 0) {
    notes.push_back(fmt::format(
        "note: {} images per rank are not a multiple of 8: 16-bit units take 8 values at once; "
        "the rest is slower",
        images));
  }
  return notes;
}

}  // namespace lockstep::trainers
