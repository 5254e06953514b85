#include "trainers/debug/replay_plan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/words.h"
#include "trainers/checkpoint/checkpoint_file.h"
#include "trainers/config/file_json.h"
#include "trainers/config/run_files.h"
#include "trainers/report/run_directory.h"
#include "trainers/report/run_record.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestTrouble = 400;

// Flags about where a run begins, what it leaves and on which machine, which the replay chooses
// itself; and the division of the batch, which is settled below.
bool is_replayed(const std::string& flag) {
  static const std::set<std::string_view> others = {"output-dir",
                                                    "csv",
                                                    "histograms",
                                                    "trace",
                                                    "parallel",
                                                    "devices",
                                                    "overwrite",
                                                    "resume",
                                                    "batch-size",
                                                    "global-batch-size",
                                                    "shards",
                                                    "bn-groups",
                                                    "sync-bn",
                                                    "quiet",
                                                    "batches-per-allreduce",
                                                    "threads",
                                                    "autotune",
                                                    "plan-file",
                                                    "transport",
                                                    "dist-url",
                                                    "rank",
                                                    "world-size",
                                                    "local-rank",
                                                    "rendezvous-timeout",
                                                    "progress",
                                                    "name",
                                                    "anonymous",
                                                    "json",
                                                    "color",
                                                    "config",
                                                    "time-limit"};
  return !others.contains(flag);
}

Program program_of(const FileJson& run) {
  const std::string name = fs::path(run.at("argv").at(0).get<std::string>()).filename();
  for (const Program program : {Program::kTrainConvnet, Program::kTrainResnet}) {
    if (name == name_of(program)) return program;
  }
  throw CheckpointError(fmt::format("a run of {} cannot be replayed", printable(name)),
                        "run.json names neither train_convnet nor train_resnet",
                        "the directory of a training run");
}

std::vector<std::string> arguments_of(const FileJson& run, const fs::path& directory) {
  std::vector<std::string> arguments = {"--quiet"};
  for (const auto& [name, flag] : run.at("flags").items()) {
    const auto origin = flag.at("origin").get<std::string>();
    const bool given =
        origin == "command line" || origin == "environment" || origin == "config file";
    if (!given || !is_replayed(name)) continue;
    arguments.push_back(fmt::format("--{}={}", name, flag.at("value").get<std::string>()));
  }
  const FileJson& cut = run.at("run");
  const auto settle = [&](const char* flag, const char* name) {
    arguments.push_back(fmt::format("--{}={}", flag, cut.at(name).get<int64_t>()));
  };
  settle("global-batch-size", "global_batch");
  settle("batches-per-allreduce", "micro_steps");
  settle("shards", "shards");
  settle("bn-groups", "bn_groups");
  if (!cut.value("plan_choices", FileJson()).is_null()) {
    arguments.push_back("--plan-file=" + (directory / kPlansFile).string());
  }
  return arguments;
}

bool is_finite(const FileTensors& tensors) {
  return std::ranges::all_of(tensors, [](const auto& entry) {
    const Tensor& tensor = entry.second;
    if (tensor.dtype() != Dtype::kF32) return true;
    return std::ranges::all_of(tensor.span<float>(), [](float x) { return std::isfinite(x); });
  });
}

// A damaged checkpoint, or one that was saved after the failure, is of no use.
bool is_sound(const fs::path& model_file) {
  try {
    return is_finite(read_checkpoint(model_file).model);
  } catch (const CheckpointError&) {
    return false;
  }
}

// The newest one before `step`; else the one that the run itself went on from.
std::string start_before(int64_t step, const fs::path& directory, const FileJson& run) {
  for (const StoredCheckpoint& stored : list_checkpoints(directory / kCheckpointsFolder)) {
    if (stored.step < step && is_sound(stored.model_file)) return stored.model_file.string();
  }
  const FileJson& resumed = run.at("resumed");
  if (resumed.is_null() || resumed.at("step").get<int64_t>() >= step) return "";
  const auto file = resumed.at("file").get<std::string>();
  return is_sound(file) ? file : "";
}

ReplayPlan plan_of(const fs::path& directory, const FileJson& run, const FileJson& numerics) {
  ReplayPlan plan{.directory = directory,
                  .program = program_of(run),
                  .arguments = arguments_of(run, directory),
                  .target = {.step = numerics.at("step"), .ranks = std::ssize(run.at("ranks"))},
                  .trouble = printable(numerics.at("what").get<std::string>(), kLongestTrouble),
                  .start = start_before(numerics.at("step"), directory, run),
                  .data_digest = run.at("data_digest"),
                  .same_bits = run.at("run").at("same_bits_on")};
  if (!plan.start.empty()) plan.arguments.push_back("--resume=" + plan.start);
  return plan;
}

}  // namespace

ReplayPlan read_replay_plan(const fs::path& run_directory) {
  const std::optional<std::string> run = contents_of(run_directory / kRunFile, kMostBytes);
  if (!run) {
    throw UsageError(fmt::format("there is no run in {}", run_directory.string()),
                     "it holds no run.json that can be read",
                     "lockstep replay with the directory of a training run");
  }
  const auto numerics = contents_of(run_directory / kNumericsFile, kMostBytes);
  if (!numerics) {
    throw UsageError(
        fmt::format("the run in {} has nothing to replay", run_directory.string()),
        fmt::format("no loss of it was infinite or NaN, nor were ten steps in a row skipped: it "
                    "left no {}",
                    kNumericsFile),
        "lockstep replay with the directory of a run that diverged");
  }
  try {
    return plan_of(run_directory, parse_file<FileJson>(*run), parse_file<FileJson>(*numerics));
  } catch (const FileJson::exception& error) {
    throw CheckpointError(fmt::format("the run in {} cannot be replayed", run_directory.string()),
                          fmt::format("run.json or {} is damaged or not Lockstep's: {}",
                                      kNumericsFile,
                                      printable(error.what())),
                          "the directory as the run left it");
  }
}

void ReplayPlan::check(int64_t ranks, const std::string& data) const {
  if (data != data_digest) {
    throw DataError(fmt::format("{} had other data", directory.string()),
                    fmt::format("its digest is {}, this is {}", printable(data_digest), data),
                    "the data set as it was, at the place that the run names");
  }
  const auto has_bits = [&](int64_t count) { return std::ranges::count(same_bits, count) > 0; };
  if (ranks == target.ranks || (has_bits(ranks) && has_bits(target.ranks))) return;
  throw UsageError(
      fmt::format("{} cannot be replayed on {}", directory.string(), counted(ranks, "rank")),
      fmt::format(
          "the run had {}; on {} its bits would differ", counted(target.ranks, "rank"), ranks),
      fmt::format("mpirun -np {} lockstep replay {}", target.ranks, directory.string()));
}

std::string ReplayPlan::line(int64_t ranks) const {
  return fmt::format("replaying {} from {} to step {} ({}) on {}; the run had {}",
                     directory.string(),
                     start.empty() ? "its beginning" : start,
                     target.step,
                     trouble,
                     counted(ranks, "rank"),
                     target.ranks);
}

void ReplayPlan::keep(const NumericsReport& report) const {
  write_file_atomically(directory / kNumericsFile, to_json(report));
}

void ReplayPlan::refuse_passed() const {
  throw EnvironmentError(
      fmt::format("{} was replayed to step {} without trouble", directory.string(), target.step),
      fmt::format("in the run {}; the same program, libraries, data and processor give the same "
                  "bits, so one of them differs, or a bit flipped",
                  trouble),
      "the build and the machine that made the run");
}

}  // namespace lockstep::trainers
