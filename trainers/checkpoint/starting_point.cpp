#include "trainers/checkpoint/starting_point.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "comm/gather.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/words.h"
#include "engine/state/class_names.h"
#include "engine/state/state_tensors.h"
#include "trainers/checkpoint/checkpoint_file.h"
#include "trainers/checkpoint/kept_state.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/config/run_files.h"
#include "trainers/report/errors.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongest = 400;  // of what is quoted from a file

bool same_folder(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

// Returns the run that runs/latest points at; empty where there is none.
fs::path latest_run() {
  std::error_code error;
  const fs::path target = fs::read_symlink("runs/latest", error);
  return error ? fs::path() : fs::path("runs") / target;
}

// Returns nothing for files of other programs or of other major versions.
EvaluationRecord recorded_in(const Texts& metadata, const std::string& file) {
  try {
    check_version(metadata, file);
  } catch (const CheckpointError&) {
    return {};
  }
  EvaluationRecord recorded = recorded_evaluation(metadata, file);
  // Files of the first versions record only their network.
  if (const auto arch = metadata.find("arch"); arch != metadata.end()) {
    recorded.flags.try_emplace("arch", arch->second);
  }
  return recorded;
}

// Renames NAME.safetensors to an unused name. Returns its path, or nothing where the file is
// missing.
fs::path set_aside(const Folder& folder, const std::string& name) {
  const std::vector<std::string> names = folder.names();
  const auto present = [&](const std::string& file) { return std::ranges::count(names, file) > 0; };
  const std::string from = name + ".safetensors";
  if (!present(from)) return {};
  std::string to;
  for (int number = 1; to.empty() || present(to); ++number) {
    to = fmt::format("{}.earlier-{}.safetensors", name, number);
  }
  std::error_code error;
  fs::rename(folder.path() / from, folder.path() / to, error);
  if (!error) return folder.path() / to;
  throw EnvironmentError(fmt::format("cannot keep {}, which a run that starts would replace",
                                     (folder.path() / from).string()),
                         error.message(),
                         "another --output-dir, or move it");
}

void append(std::vector<std::string>& notes, const std::vector<std::string>& more) {
  notes.insert(notes.end(), more.begin(), more.end());
}

}  // namespace

StartingPoint::StartingPoint(const RunRequest& asked,
                             const Options& options,
                             Communicator& ranks,
                             bool is_first)
    : requested_(asked),
      options_(options),
      request_(asked),
      output_dir_(asked.output_dir),
      existing_run_(asked.overwrite ? ExistingRun::kOverwrite : ExistingRun::kRefuse) {
  if (asked.resume.empty() && asked.pretrained.empty()) return;
  std::optional<SoundCheckpoint> kept;
  if (asked.kept_steps > 0 && asked.resume == "auto") {
    fs::path folder;
    run_or_end_all_ranks(ranks, [&] {
      if (is_first) folder = kept_state_folder();
    });
    kept = newest_kept(ranks, folder);
  }
  run_or_end_all_ranks(ranks, [&] {
    if (ranks.rank() == 0) find(std::move(kept));
  });
  share_source(ranks);
  if (source_) run_or_end_all_ranks(ranks, [&] { take_recorded_flags(*source_); });
}

void StartingPoint::take_recorded_flags(Source& source) {
  source.recorded = recorded_in(source.metadata, source.file);
  try {
    take_flags(options_, source.recorded, source.use);
    request_ = make_run_request(options_);
    if (source.use == WeightsUse::kEvaluate) request_.photos.classes = source.outputs().names();
  } catch (const UsageError& error) {
    throw CheckpointError(
        fmt::format(
            "what {} records does not fit: {}", source.file, printable(error.what(), kLongest)),
        printable(error.why(), kLongest),
        "the program that wrote it, or other flags in place of the recorded");
  }
}

void StartingPoint::find(std::optional<SoundCheckpoint> kept) {
  request_.photos.classes = read_class_names(requested_.class_names);
  if (!requested_.resume.empty()) find_checkpoint(std::move(kept));
  if (resumed_) {
    if (!requested_.pretrained.empty() && requested_.resume != "auto") {
      notes_.push_back(fmt::format("note: --pretrained {} is not read: the run goes on from {}",
                                   requested_.pretrained,
                                   resumed_->model_file.string()));
    }
    return;
  }
  if (!requested_.pretrained.empty()) {
    pretrained_.emplace(requested_.pretrained);
  } else if (requested_.evaluate) {
    throw CheckpointError("there are no weights to evaluate",
                          "--resume auto found no checkpoint",
                          "--resume with a run directory, or --pretrained FILE");
  }
}

void StartingPoint::find_checkpoint(std::optional<SoundCheckpoint> kept) {
  const bool automatic = requested_.resume == "auto";
  if (automatic && output_dir_.empty()) output_dir_ = latest_run();
  if (automatic && output_dir_.empty()) {
    notes_.emplace_back("note: --resume auto: there is no runs/latest, a new run starts");
    return;
  }
  if (!take_kept(std::move(kept))) {
    resumed_ = find_resume_point(requested_.resume, output_dir_, notes_);
    if (resumed_) newest_on_disk_ = resumed_->model_file;
  }
  stay_in_place();
  find_best();
}

fs::path StartingPoint::checkpoints_in_place() const {
  return fs::path(output_dir_) / kCheckpointsFolder;
}

// The best weights of the run up to here.
void StartingPoint::find_best() {
  if (!resumed_ || requested_.evaluate) return;
  const TrainingPosition& at = resumed_->checkpoint.record.position;
  if (at.best.total == 0) return;
  const bool in_place = existing_run_ == ExistingRun::kContinue;
  const fs::path folder = in_place ? checkpoints_in_place() : resumed_->model_file.parent_path();
  const fs::path file = folder / kBestFile;
  std::string problem;
  try {
    const WeightsFile best(file);
    if (record_of(best.metadata(), file.string()).position.steps <= at.steps) {
      if (!in_place) best_.file = file;
      return;
    }
    // In the same directory, a killed run has saved it after the step from which this one goes on.
    // With the same flags this one saves it again; with others it may never be as good.
    problem = "it is of a later step";
  } catch (const Error& error) {
    problem = error.why();
  }
  best_.known = false;
  notes_.push_back(
      fmt::format("note: {} is not carried over: {}; the next evaluation is the best so far",
                  file.string(),
                  problem));
}

// Whether the run goes on from the state in memory.
bool StartingPoint::take_kept(std::optional<SoundCheckpoint> kept) {
  if (!kept) return false;
  const std::vector<StoredCheckpoint> stored = list_checkpoints(checkpoints_in_place());
  if (!stored.empty()) {
    newest_on_disk_ = stored.front().model_file;
    if (stored.front().step >= kept->checkpoint.record.position.steps) return false;
  }
  resumed_ = ResumePoint{.model_file = std::move(kept->model_file),
                         .run_directory = output_dir_,
                         .checkpoint = std::move(kept->checkpoint)};
  return true;
}

// Rank 0 hands its source to every rank.
void StartingPoint::share_source(Communicator& ranks) {
  nlohmann::json mine;
  if (resumed_) {
    mine = {{"file", resumed_->model_file.string()},
            {"metadata", to_metadata(resumed_->checkpoint.record)},
            {"knows_best", best_.known},
            {"resumed", true}};
  } else if (pretrained_) {
    mine = {
        {"file", requested_.pretrained}, {"metadata", pretrained_->metadata()}, {"resumed", false}};
  }
  if (!mine.is_null()) mine["class_names"] = request_.photos.classes;
  const auto source = nlohmann::json::parse(comm::broadcast_text(
      ranks, mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  if (source.is_null()) return;
  const bool resumed = source.at("resumed");
  if (resumed) best_.known = source.at("knows_best");
  source_ = {.file = source.at("file"),
             .metadata = source.at("metadata"),
             .use = requested_.evaluate ? WeightsUse::kEvaluate
                    : resumed           ? WeightsUse::kResume
                                        : WeightsUse::kFineTune,
             .class_names = source.at("class_names")};
  if (source_->use == WeightsUse::kResume) record_ = record_of(source_->metadata, source_->file);
}

StartingPoint::Settled StartingPoint::settle(const data::DatasetPair& data,
                                             const std::string& data_digest,
                                             Communicator& ranks) {
  Settled settled{.request = request_, .evaluation = {}};
  run_or_end_all_ranks(ranks, [&] {
    EvaluationRecord& now = settled.evaluation;
    now = evaluation_record(request_, data);
    if (!source_) return;
    const Source& source = *source_;
    check_record(source, now);
    if (record_) {
      settled.request =
          request_of_resumed_run(request_, options_, data_digest, record_->run, ranks.size());
    }
    const EvaluationRecord asked = evaluation_record(requested_, data);
    append(notes_, notes_on_flags(asked, now, source.recorded, source.use, source.file));
    note_built_in_images(source, data_digest);
    if (source.use == WeightsUse::kEvaluate) {
      append(notes_, source.outputs().check(now, *data.test));
    }
    now.average = source.use == WeightsUse::kEvaluate && source.recorded.average;
  });
  return settled;
}

// Who leaves the folder out may expect the images of the weights' own run. Its digest is that of
// the images to train on and, behind it, that of the images to evaluate, which alone are open here.
void StartingPoint::note_built_in_images(const Source& source, const std::string& data_digest) {
  const auto trained_on = source.metadata.find("data_digest");
  if (source.use != WeightsUse::kEvaluate || !request_.data.empty() ||
      trained_on == source.metadata.end() || trained_on->second.ends_with(data_digest)) {
    return;
  }
  notes_.push_back(fmt::format(
      "note: without a data folder the built-in {} are evaluated; {} was trained on other images",
      request_.dataset,
      source.file));
}

void StartingPoint::check_record(const Source& source, const EvaluationRecord& now) {
  const auto& [file, metadata, use, class_names, recorded] = source;
  if (const auto found = contradiction(now, recorded, use)) {
    throw CheckpointError(
        fmt::format("{} is {}, {} has {}", found->flag, found->now, file, found->recorded),
        use == WeightsUse::kResume
            ? "a run goes on with the network and the images that it began with"
            : "the weights are those of another network",
        fmt::format("leave {} out", found->flag));
  }
  if (use == WeightsUse::kFineTune || !source.class_names.empty()) return;
  if (const auto other = other_class(now.class_names, recorded.class_names, file)) {
    throw DataError(*other,
                    "an output of the network stands for a class by its place in this order",
                    "the class folders that it was trained on, or --pretrained to train for these");
  }
}

void StartingPoint::stay_in_place() {
  const fs::path home = resumed_ ? resumed_->run_directory : fs::path(output_dir_);
  if (home.empty()) return;
  if (requested_.evaluate) {            // it has a run directory of its own
    if (requested_.resume == "auto") {  // --output-dir said where to look
      output_dir_ = resumed_ ? fs::path() : fs::path(requested_.output_dir);
    } else if (same_folder(home, output_dir_)) {
      throw UsageError(fmt::format("the evaluation would replace the record of {}", home.string()),
                       "it has a run directory of its own",
                       "another --output-dir, or none");
    }
    return;
  }
  const bool elsewhere = !output_dir_.empty() && !same_folder(home, output_dir_);
  if (elsewhere && resumed_) return;
  if (requested_.overwrite) {
    throw UsageError(
        fmt::format("--overwrite would remove the run to go on with, {}", home.string()),
        "--resume goes on in the directory that it came from",
        "--resume alone, or another --output-dir");
  }
  if (output_dir_.empty()) output_dir_ = home;
  existing_run_ = ExistingRun::kContinue;
}

void StartingPoint::refuse_later_steps() const {
  if (!resumed_ || existing_run_ != ExistingRun::kContinue) return;
  std::error_code error;
  if (requested_.resume == "auto" || fs::is_directory(requested_.resume, error)) return;
  const std::vector<StoredCheckpoint> stored = list_checkpoints(checkpoints_in_place());
  const int64_t step = resumed_->checkpoint.record.position.steps;
  if (stored.empty() || stored.front().step <= step) return;
  throw UsageError(
      fmt::format("{} holds later steps, up to {}", output_dir_, stored.front().step),
      fmt::format("a run that goes on from step {} there would remove them", step),
      fmt::format("--resume {} to go on from the last one, or another --output-dir", output_dir_));
}

std::optional<TrainingPosition> StartingPoint::position() const {
  if (!record_) return std::nullopt;
  TrainingPosition at = record_->position;
  if (!best_.known) at.best = {}, at.best_epoch = 0;
  return at;
}

std::optional<int64_t> StartingPoint::continued_epoch() const {
  if (record_) return record_->position.epoch;
  std::error_code error;
  const bool has_begun = existing_run_ == ExistingRun::kContinue &&
                         fs::exists(fs::path(output_dir_) / kRunFile, error);
  return has_begun ? std::optional<int64_t>(0) : std::nullopt;
}

fs::path StartingPoint::newest_in_place() const {
  return resumed_ && existing_run_ == ExistingRun::kContinue ? newest_on_disk_ : fs::path();
}

std::vector<std::string> StartingPoint::notes(const RunIdentity& now,
                                              const ResolvedRun& run,
                                              const data::DatasetPair& data) const {
  std::vector<std::string> notes = notes_;
  if (!record_) return notes;
  const int64_t per_epoch = steps_per_epoch(run.batch, data.train->size());
  append(notes, notes_on_resume(now, run, per_epoch, *record_));
  return notes;
}

std::vector<std::string> StartingPoint::load(nn::Module& model) {
  if (resumed_) {
    load_state(model.state(),
               resumed_->checkpoint.model,
               fmt::format("{} does not fit the network", resumed_->model_file.string()),
               "the network's flags and data as in the run that made it");
    const TrainingPosition& at = resumed_->checkpoint.record.position;
    return {fmt::format("=> loaded checkpoint '{}' (epoch {}, step {})",
                        resumed_->model_file.string(),
                        at.epoch,
                        at.steps)};
  }
  if (!pretrained_) return {};
  const LoadedWeights loaded = pretrained_->load_into(
      model, request_.evaluate ? Classifier::kMustFit : Classifier::kMayStartFresh);
  std::vector<std::string> lines = {
      fmt::format("=> using pre-trained model '{}' ({}{})",
                  request_.arch,
                  request_.pretrained,
                  source_ && source_->recorded.average ? ", a moving average" : "")};
  if (!loaded.prefix.empty()) {
    lines.push_back(fmt::format("note: the names in {} begin with '{}', which is left out",
                                request_.pretrained,
                                printable(loaded.prefix)));
  }
  if (loaded.fresh) {
    lines.push_back(fmt::format("=> the classifier {} has other classes in {} and starts fresh",
                                *loaded.fresh,
                                request_.pretrained));
  }
  return lines;
}

std::vector<std::string> StartingPoint::settle_best(const Folder& checkpoints) const {
  if (resumed_) {
    if (!best_.file.empty()) copy_file_atomically(best_.file, checkpoints.path() / kBestFile);
    return {};
  }
  std::vector<std::string> notes;
  for (const std::string name : {"best", "ema"}) {
    const fs::path kept = set_aside(checkpoints, name);
    if (kept.empty()) continue;
    notes.push_back(
        fmt::format("note: {}.safetensors of an earlier run is kept as {}", name, kept.string()));
  }
  return notes;
}

}  // namespace lockstep::trainers
