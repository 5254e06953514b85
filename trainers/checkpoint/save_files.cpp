#include "trainers/checkpoint/save_files.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/atomic_file.h"
#include "core/function_ref.h"
#include "trainers/checkpoint/checkpoint_file.h"
#include "trainers/config/run_files.h"

namespace lockstep::trainers {

void write_snapshot(const Folder& folder, RecordedSnapshot& snapshot) {
  put_in_file_order(snapshot);
  write_checkpoint(folder,
                   model_file_name(snapshot.record.position.steps),
                   snapshot.record,
                   snapshot.model,
                   snapshot.optimizer);
}

namespace {

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

// Returns weights and buffers from their moving average. The state of nn::Ema holds the averages.
FileTensors averaged(const RecordedSnapshot& snapshot) {
  FileTensors weights = snapshot.model;
  for (auto& [name, tensor] : weights) {
    const auto average = snapshot.optimizer.find(name + ".ema");
    if (average != snapshot.optimizer.end()) tensor = average->second;
  }
  return weights;
}

// Runs `body` and records an EnvironmentError under `what`. Returns whether there was none.
bool attempt(std::string what,
             std::vector<SaveReport::Failure>& failures,
             FunctionRef<void()> body) {
  try {
    body();
    return true;
  } catch (const EnvironmentError& error) {
    failures.push_back({.what = std::move(what), .error = error});
    return false;
  }
}

void save_checkpoint(const Folder& folder,
                     int64_t keep,
                     RecordedSnapshot& snapshot,
                     SaveReport& report) {
  const int64_t step = snapshot.record.position.steps;
  const std::string name = model_file_name(step);
  if (!attempt(name, report.unsaved, [&] { write_snapshot(folder, snapshot); })) return;
  attempt("checkpoints are saved, but last.safetensors does not lead to the newest",
          report.untidy,
          [&] { link_atomically(folder, kLastFile, name); });
  attempt("checkpoints are saved, but older ones cannot be removed", report.untidy, [&] {
    remove_superseded(folder, step, keep);
  });
}

}  // namespace

std::vector<std::string> SavedFiles::names(int64_t step) const {
  std::vector<std::string> names;
  if (average) names.emplace_back(kAverageFile);
  if (best) names.emplace_back(kBestFile);
  if (checkpoint) names.push_back(model_file_name(step));
  return names;
}

SaveReport save_files(const Folder& folder,
                      const SavedFiles& files,
                      int64_t keep,
                      RecordedSnapshot& snapshot) {
  SaveReport report;
  report.folder = folder.path();
  if (files.average) {
    attempt(kAverageFile, report.unsaved, [&] {
      put_in_file_order(snapshot);
      CheckpointRecord record = snapshot.record;
      record.run.evaluation.average = true;
      write_weights(folder, kAverageFile, record, averaged(snapshot));
    });
  }
  if (files.best) {
    attempt(kBestFile, report.unsaved, [&] {
      put_in_file_order(snapshot);
      write_weights(folder, kBestFile, snapshot.record, snapshot.model);
    });
  }
  if (files.checkpoint) save_checkpoint(folder, keep, snapshot, report);
  report.folder_is_removed = !report.unsaved.empty() && folder.is_removed();
  return report;
}

void remove_superseded(const Folder& folder, int64_t step, int64_t keep) {
  int64_t kept = 0;
  for (const int64_t stored : whole_steps(folder.names())) {
    if (stored <= step && kept++ < keep) continue;
    const std::string model = model_file_name(stored);
    if (folder.remove(model)) folder.remove(state_file_of(model).string());
  }
}

void remove_leftovers(const Folder& folder) {
  const std::vector<std::string> names = folder.names();
  const std::set<std::string> present(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::optional<std::string> model = model_of_state(name);
    const bool is_lone = model && step_of_model(*model) && !present.contains(*model);
    if (name.starts_with(".tmp.") || is_lone) folder.remove(name);
  }
}

}  // namespace lockstep::trainers
