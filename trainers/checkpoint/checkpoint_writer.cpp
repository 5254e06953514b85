#include "trainers/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/atomic_file.h"
#include "core/error.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

// The steps of the models in a folder of these files, those of whole checkpoints, newest first.
std::vector<int64_t> whole_steps(const std::vector<std::string>& names) {
  const std::set<std::string> present(names.begin(), names.end());
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    const std::optional<int64_t> step = step_of_model(name);
    if (step && present.contains(state_file_of(name).string())) steps.push_back(*step);
  }
  std::ranges::sort(steps, std::ranges::greater());
  return steps;
}

// Removes what a killed process left: unfinished writes, and states whose model did not take its
// place any more. Requires: no other process writes there.
void remove_leftovers(const Folder& folder) {
  const std::vector<std::string> names = folder.names();
  const std::set<std::string> present(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::optional<std::string> model = model_of_state(name);
    const bool is_lone = model && step_of_model(*model) && !present.contains(*model);
    if (name.starts_with(".tmp.") || is_lone) folder.remove(name);
  }
}

// Removes all but the `keep` newest up to `step`, and those after it: they were made by a
// continuation that was given up. A model that stays keeps its state: alone it would stay forever.
void remove_superseded(const Folder& folder, int64_t step, int64_t keep) {
  int64_t kept = 0;
  for (const int64_t stored : whole_steps(folder.names())) {
    if (stored <= step && kept++ < keep) continue;
    const std::string model = model_file_name(stored);
    if (folder.remove(model)) folder.remove(state_file_of(model).string());
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(Options options, RunIdentity run, Console& console)
    : options_(std::move(options)),
      run_(std::move(run)),
      console_(console),
      newest_sound_(options_.newest_sound) {
  tidy("what a killed process left cannot be removed",
       [](const Folder& folder) { remove_leftovers(folder); });
}

bool CheckpointWriter::try_to_save(const std::string& name,
                                   FunctionRef<void(const Folder&)> write) {
  const Folder* folder = nullptr;
  for (bool again = true;; again = false) {
    try {
      folder = &options_.folder();
      write(*folder);
      return true;
    } catch (const EnvironmentError& error) {
      // Removed meanwhile: the next look finds another.
      if (again && (folder == nullptr || folder->is_removed())) continue;
      const fs::path file = folder == nullptr ? fs::path(name) : folder->path() / name;
      console_.warn(fmt::format(
          "lockstep: warning: {} is not saved\n  why: {}: {}\n  try: {}; training goes on, {}",
          file.string(),
          error.what(),
          error.why(),
          advice_of(error),
          newest_text()));
      return false;
    }
  }
}

std::string CheckpointWriter::newest_text() const {
  std::error_code error;
  if (newest_sound_.empty()) return "there is no checkpoint yet";
  if (fs::status(newest_sound_, error).type() == fs::file_type::not_found) {
    return fmt::format("and {}, the last that was saved, is no longer there",
                       newest_sound_.string());
  }
  return "the newest sound checkpoint is " + newest_sound_.string();
}

void CheckpointWriter::tidy(const std::string& what, FunctionRef<void(const Folder&)> body) {
  try {
    body(options_.folder());
  } catch (const EnvironmentError& error) {
    if (!said_.insert(what).second) return;
    console_.warn(fmt::format("lockstep: warning: {}\n  why: {}: {}\n  try: {}; training goes on",
                              what,
                              error.what(),
                              error.why(),
                              advice_of(error)));
  }
}

void CheckpointWriter::save(const nn::Module& model,
                            const nn::Optimizer& optimizer,
                            const TrainingPosition& at) {
  const std::string name = model_file_name(at.steps);
  last_is_saved_ = try_to_save(name, [&](const Folder& folder) {
    CheckpointRecord record{.run = run_, .at = at, .model_digest = {}};
    write_checkpoint(
        folder, name, record, file_tensors(model.state()), file_tensors(optimizer.state()));
    newest_sound_ = folder.path() / name;
  });
  if (!last_is_saved_) return;
  tidy("checkpoints are saved, but last.safetensors does not lead to the newest",
       [&](const Folder& folder) { link_atomically(folder, "last.safetensors", name); });
  tidy("checkpoints are saved, but older ones cannot be removed",
       [&](const Folder& folder) { remove_superseded(folder, at.steps, options_.keep); });
}

void CheckpointWriter::save_best(const nn::Module& model, const TrainingPosition& at) {
  save_weights("best.safetensors", model, at, run_);
}

void CheckpointWriter::save_average(const nn::Module& model, const TrainingPosition& at) {
  RunIdentity run = run_;
  run.evaluation.average = true;
  save_weights("ema.safetensors", model, at, run);
}

void CheckpointWriter::save_weights(const char* name,
                                    const nn::Module& model,
                                    const TrainingPosition& at,
                                    const RunIdentity& run) {
  try_to_save(name, [&](const Folder& folder) {
    CheckpointRecord record{.run = run, .at = at, .model_digest = {}};
    write_weights(folder, name, record, file_tensors(model.state()));
  });
}

}  // namespace lockstep::trainers
