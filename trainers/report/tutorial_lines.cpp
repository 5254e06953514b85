#include "trainers/report/tutorial_lines.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "core/round_up.h"

namespace lockstep::trainers {
namespace {

constexpr const char* kMainPyPreset = "imagenet-main";

bool has_main_py_preset(const Options& options) {
  const Setting* preset = options.find("preset");
  return preset != nullptr && preset->value == kMainPyPreset;
}

bool gave_foreign(const Options& options, std::string_view name) {
  return std::ranges::count(options.foreign, name) > 0;
}

// The batch that the user, or the preset, would have given main.py as -b; 0 where neither did.
int64_t batch_of_node(const Options& options, const BatchRequest& batch) {
  if (batch.per_rank) return *batch.per_rank;
  if (has_main_py_preset(options) && !options.given("global-batch-size")) {
    return batch.global.value_or(0);
  }
  return 0;
}

std::string lost_text(int64_t batch, int64_t ranks_of_node) {
  const int64_t lost = batch % ranks_of_node;
  if (lost == 0) return {};
  return fmt::format(", since int({} / {}) loses {}", batch, ranks_of_node, lost);
}

void note_batch(const Options& options,
                const ResolvedRun& run,
                int64_t ranks_of_node,
                std::vector<std::string>& notes) {
  const int64_t batch = batch_of_node(options, run.request.batch);
  if (batch == 0 || run.batch.micro_steps > 1) return;
  const int64_t theirs = main_py_shares(batch, 0, ranks_of_node).batch_per_rank * run.batch.ranks;
  if (theirs == run.batch.images) return;
  notes.push_back(
      fmt::format("note: {} images per step (main.py: {}{}): its -b is a node's, ours a rank's; "
                  "--global-batch-size counts those of all ranks",
                  run.batch.images,
                  theirs,
                  lost_text(batch, ranks_of_node)));
}

void note_workers(const ResolvedRun& run, int64_t ranks_of_node, std::vector<std::string>& notes) {
  const int64_t workers = run.request.workers;
  const int64_t theirs = main_py_shares(0, workers, ranks_of_node).workers_per_rank;
  if (theirs == workers) return;
  notes.push_back(fmt::format(
      "note: {} loader threads on a host of {} ranks (main.py: {}): its -j is a node's, ours a "
      "rank's; -j {} gives as many",
      workers * ranks_of_node,
      ranks_of_node,
      theirs * ranks_of_node,
      theirs));
}

}  // namespace

NodeShares main_py_shares(int64_t batch, int64_t workers, int64_t ranks_of_node) {
  return {.batch_per_rank = batch / ranks_of_node,
          .workers_per_rank = ceil_div(workers, ranks_of_node)};
}

bool follows_main_py(const Options& options) {
  if (const Setting* preset = options.find("preset")) return preset->value == kMainPyPreset;
  return std::ranges::any_of(options.foreign, [](const std::string& name) {
    const ForeignFlag* flag = find_foreign_flag("--" + name);
    return flag != nullptr && flag->origin == "main.py";
  });
}

std::vector<std::string> main_py_notes(const Options& options,
                                       const ResolvedRun& run,
                                       const comm::Launch& launch) {
  std::vector<std::string> notes;
  if (!follows_main_py(options)) return notes;
  if (options.given("seed")) {
    notes.emplace_back(
        "note: You have chosen to seed training. This costs no speed here, since every run is "
        "deterministic, and a resumed run keeps its bits.");
  }
  if (gave_foreign(options, "gpu") && run.batch.ranks == 1) {
    notes.emplace_back(
        "note: You have chosen a specific GPU. This will completely disable data parallelism.");
  }
  note_batch(options, run, launch.local_size, notes);
  note_workers(run, launch.local_size, notes);
  return notes;
}

std::vector<std::string> main_py_lines(const Options& options,
                                       const ResolvedRun& run,
                                       const comm::Launch& launch,
                                       std::span<const std::string> loaded) {
  std::vector<std::string> lines;
  const bool follows = follows_main_py(options);
  const bool on_cuda = run.request.device == Device::kCuda;
  if (follows && on_cuda) {
    lines.push_back(fmt::format("Use GPU: {} for training", launch.local_rank));
  }
  const bool pretrained = std::ranges::any_of(loaded, [](const std::string& line) {
    return line.starts_with("=> using pre-trained model");
  });
  if (!pretrained) lines.push_back(fmt::format("=> creating model '{}'", run.request.arch));
  lines.insert(lines.end(), loaded.begin(), loaded.end());
  if (follows && !on_cuda) lines.emplace_back("using CPU, this will be slow");
  return lines;
}

std::vector<std::string> apex_start_lines(const ResolvedRun& run) {
  const PrecisionConfig& precision = run.request.precision;
  const auto& scaling = precision.loss_scaling;
  std::vector<std::string> lines = {
      fmt::format("opt_level = {}", name_of(precision.level)),
      fmt::format("keep_batchnorm_fp32 = {}", precision.keep_batchnorm_fp32 ? "True" : "False"),
      !scaling           ? "loss_scale = 1.0"
      : scaling->dynamic ? "loss_scale = dynamic"
                         : fmt::format("loss_scale = {:#}", scaling->initial)};
  for (int64_t rank = 0; rank < run.batch.ranks; ++rank) {
    lines.push_back(fmt::format("### global rank of curr node: {}", rank));
  }
  return lines;
}

std::vector<std::string> opening_lines(const Options& options,
                                       const ResolvedRun& run,
                                       const comm::Launch& launch,
                                       std::span<const std::string> loaded) {
  std::vector<std::string> lines;
  if (run.request.apex_lines) lines = apex_start_lines(run);
  const std::vector<std::string> rest = run.request.main_py_lines
                                            ? main_py_lines(options, run, launch, loaded)
                                            : std::vector(loaded.begin(), loaded.end());
  lines.insert(lines.end(), rest.begin(), rest.end());
  return lines;
}

std::string apex_end_line(double seconds) {
  const double minutes = std::floor(seconds / 60);
  return fmt::format("### Training Time: {:.2f} hrs {:.2f} mins {:.2f} secs | {:.2f} secs",
                     std::floor(minutes / 60),
                     std::fmod(minutes, 60),
                     std::fmod(seconds, 60),
                     seconds);
}

namespace {

std::string python_repr(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // else "0", no "1e-05", "nan"
  return text;
}

}  // namespace

std::vector<std::string> tricks_start_lines(int64_t ranks, const std::string& name) {
  std::vector<std::string> lines;
  lines.reserve(static_cast<size_t>(ranks) + 1);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    lines.push_back(fmt::format("Running DDP on rank: {}", rank));
  }
  lines.push_back(fmt::format("Now Training: {}", name));
  return lines;
}

std::string tricks_epoch_line(const TricksEpoch& epoch) {
  constexpr double kPercent = 100;
  return fmt::format(
      "epoch: {:03d}/{}, time: {:.2f}s, learning_rate: {}, train_loss: {:.4f}, train_acc: {:.4f}, "
      "valid_loss: {:.4f}, valid_acc: {:.4f}",
      epoch.number,
      epoch.epochs,
      epoch.seconds,
      python_repr(epoch.lr),
      epoch.train_loss,
      epoch.train_acc1 / kPercent,
      epoch.test.loss,
      epoch.test.acc1() / kPercent);
}

std::string tricks_cut_line(int64_t epoch, double lr) {
  return fmt::format("Epoch {:5d}: reducing learning rate of group 0 to {:.4e}.", epoch + 1, lr);
}

}  // namespace lockstep::trainers
