#include "trainers/checkpoint/starting_point.h"

#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "core/error.h"
#include "trainers/checkpoint/pretrained.h"
#include "trainers/loop/agree.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBest = "best.safetensors";

bool same_folder(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

// What runs/latest points at; empty where there is no such run.
fs::path latest_run() {
  std::error_code error;
  const fs::path target = fs::read_symlink("runs/latest", error);
  return error ? fs::path() : fs::path("runs") / target;
}

std::optional<CheckpointRecord> shared_record(const std::optional<ResumePoint>& found,
                                              Communicator& ranks) {
  const std::string mine =
      found ? nlohmann::json(to_metadata(found->checkpoint.record)).dump() : "";
  const std::string text = broadcast_text(ranks, mine);
  if (text.empty()) return std::nullopt;
  return record_of(nlohmann::json::parse(text).get<Texts>(), "rank 0's checkpoint");
}

void load_checkpoint(const ResumePoint& from, nn::Module& model) {
  const std::vector<nn::StateEntry> entries = model.state();
  const std::vector<std::string> problems = misfits(entries, from.checkpoint.model);
  if (!problems.empty()) {
    throw CheckpointError(fmt::format("{} does not fit the network", from.model_file.string()),
                          first_of(problems),
                          "the network's flags and data as in the run that made it");
  }
  copy_into(entries, from.checkpoint.model);
}

}  // namespace

StartingPoint::StartingPoint(RunConfig& config,
                             const Options& options,
                             const std::string& data_digest,
                             Communicator& ranks)
    : existing_run_(config.overwrite ? ExistingRun::kOverwrite : ExistingRun::kRefuse) {
  if (config.resume.empty()) return;
  on_all_ranks(ranks, [&] {
    if (ranks.rank() == 0) find(config);
  });
  const std::optional<CheckpointRecord> record = shared_record(resumed_, ranks);
  if (!record || config.evaluate) return;
  on_all_ranks(ranks, [&] { keep_run(config, options, data_digest, record->run, ranks.size()); });
  record_ = record;
}

void StartingPoint::find(RunConfig& config) {
  const bool automatic = config.resume == "auto";
  if (automatic && config.output_dir.empty()) config.output_dir = latest_run();
  if (automatic && config.output_dir.empty()) {
    notes_.emplace_back("note: --resume auto: there is no runs/latest, a run starts");
    return;
  }
  resumed_ = find_resume_point(config.resume, config.output_dir, notes_);
  stay_in_place(config);
}

void StartingPoint::stay_in_place(RunConfig& config) {
  const fs::path home = resumed_ ? resumed_->run_directory : fs::path(config.output_dir);
  if (home.empty()) return;
  const bool elsewhere =
      config.output_dir.empty() ? config.evaluate : !same_folder(home, config.output_dir);
  if (elsewhere && resumed_) return;
  if (config.overwrite) {
    throw UsageError(
        fmt::format("--overwrite would remove the run to go on with, {}", home.string()),
        "--resume goes on in the directory that it came from",
        "--resume alone, or another --output-dir");
  }
  if (config.output_dir.empty()) config.output_dir = home;
  existing_run_ = ExistingRun::kContinue;
}

std::optional<TrainingPosition> StartingPoint::position() const {
  return record_ ? std::optional(record_->at) : std::nullopt;
}

fs::path StartingPoint::newest_in_place() const {
  return resumed_ && existing_run_ == ExistingRun::kContinue ? resumed_->model_file : fs::path();
}

std::vector<std::string> StartingPoint::notes(const RunIdentity& now) const {
  std::vector<std::string> notes = notes_;
  if (!record_) return notes;
  for (const std::string& difference : differences(now, record_->run)) {
    notes.push_back(fmt::format(
        "note: {} in the checkpoint's run: bits may differ from an uninterrupted one", difference));
  }
  return notes;
}

std::vector<std::string> StartingPoint::load(nn::Module& model, const RunConfig& config) const {
  if (resumed_) {
    load_checkpoint(*resumed_, model);
    const TrainingPosition& at = resumed_->checkpoint.record.at;
    return {fmt::format("=> loaded checkpoint '{}' (epoch {}, step {})",
                        resumed_->model_file.string(),
                        at.epoch,
                        at.steps)};
  }
  if (config.pretrained.empty()) return {};
  const auto fresh =
      load_pretrained(config.pretrained,
                      model,
                      config.evaluate ? Classifier::kMustFit : Classifier::kMayStartFresh);
  std::vector<std::string> lines = {
      fmt::format("=> using pre-trained model '{}' ({})", config.arch, config.pretrained)};
  if (fresh) {
    lines.push_back(fmt::format("=> the classifier {} has other classes in {} and starts fresh",
                                *fresh,
                                config.pretrained));
  }
  return lines;
}

void StartingPoint::carry_best_to(const fs::path& checkpoints) const {
  if (!resumed_) return;
  const fs::path from = resumed_->model_file.parent_path() / kBest;
  std::error_code error;
  if (!fs::exists(from, error) || same_folder(from.parent_path(), checkpoints)) return;
  copy_file_atomically(from, checkpoints / kBest);
}

}  // namespace lockstep::trainers
