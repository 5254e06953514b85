#include "trainers/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "core/error.h"
#include "trainers/checkpoint/checkpoint_file.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

// Runs `body` on a thread, or at once where the system gives no more threads.
template <class Body>
std::future<SaveReport> in_background(Body body) {
  try {
    return std::async(std::launch::async, body);
  } catch (const std::system_error&) {
    std::future<SaveReport> done = std::async(std::launch::deferred, body);
    done.wait();
    return done;
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(Options options, RunIdentity run, Console& console)
    : options_(std::move(options)),
      run_(std::move(run)),
      console_(console),
      newest_sound_(options_.newest_sound) {
  try {
    remove_leftovers(options_.folder());
  } catch (const EnvironmentError& error) {
    warn_untidy("what a killed process left cannot be removed", error);
  }
}

void CheckpointWriter::save(const SavedFiles& files,
                            const SnapshotSource& source,
                            const TrainingPosition& position) {
  finish();
  take_snapshot(source, snapshot_);
  snapshot_.record = {.run = run_, .position = position, .model_digest = {}};
  files_ = files;
  if (files.checkpoint) last_is_saved_ = false;
  is_second_try_ = false;
  is_copying_ = true;
  advance();
}

void CheckpointWriter::advance() {
  if (is_copying_ && is_there(snapshot_)) begin_writing();
  if (!writing_.valid()) return;
  if (writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) end_writing();
}

void CheckpointWriter::finish() {
  if (is_copying_) {
    wait_for(snapshot_);
    begin_writing();
  }
  bool is_said = false;
  while (writing_.valid()) {
    if (writing_.wait_for(options_.patience) == std::future_status::ready) {
      end_writing();
    } else if (!std::exchange(is_said, true)) {
      console_.warn(fmt::format("note: the files of step {} are still being saved; the run waits",
                                snapshot_.record.position.steps));
    }
  }
}

void CheckpointWriter::begin_writing() {
  is_copying_ = false;
  try {
    folder_ = open_folder();
  } catch (const EnvironmentError& error) {
    for (const std::string& name : files_.names(snapshot_.record.position.steps)) {
      warn_unsaved(name, error);
    }
    return;
  }
  writing_ =
      in_background([this] { return save_files(*folder_, files_, options_.keep, snapshot_); });
}

Folder CheckpointWriter::open_folder() const {
  try {
    return options_.folder().duplicate();
  } catch (const EnvironmentError&) {  // removed meanwhile: the next look finds another
    return options_.folder().duplicate();
  }
}

void CheckpointWriter::end_writing() {
  const SaveReport report = writing_.get();
  if (report.folder_is_removed && !std::exchange(is_second_try_, true)) return begin_writing();
  const std::string model = model_file_name(snapshot_.record.position.steps);
  if (files_.checkpoint && std::ranges::find(report.unsaved, model, &SaveReport::Failure::what) ==
                               report.unsaved.end()) {
    last_is_saved_ = true;
    newest_sound_ = report.folder / model;
  }
  for (const auto& [file, error] : report.unsaved) {
    warn_unsaved((report.folder / file).string(), error);
  }
  for (const auto& [what, error] : report.untidy) warn_untidy(what, error);
}

void CheckpointWriter::warn_unsaved(const std::string& file, const Error& error) const {
  console_.warn(
      fmt::format("lockstep: warning: {} of step {} is not saved\n  why: {}: {}\n  try: {}; "
                  "training goes on, {}",
                  file,
                  snapshot_.record.position.steps,
                  error.what(),
                  error.why(),
                  advice_of(error),
                  newest_text()));
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

void CheckpointWriter::warn_untidy(const std::string& what, const Error& error) {
  if (!warned_.insert(what).second) return;
  console_.warn(fmt::format("lockstep: warning: {}\n  why: {}: {}\n  try: {}; training goes on",
                            what,
                            error.what(),
                            error.why(),
                            advice_of(error)));
}

}  // namespace lockstep::trainers
