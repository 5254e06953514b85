#include "trainers/checkpoint/checkpoint_writer.h"

#include <utility>

#include <fmt/core.h>

#include "core/error.h"
#include "trainers/checkpoint/checkpoint_file.h"

namespace lockstep::trainers {

namespace fs = std::filesystem;

CheckpointWriter::CheckpointWriter(Options options, RunIdentity run, Console& console)
    : options_(std::move(options)),
      run_(std::move(run)),
      console_(console),
      newest_sound_(options_.newest_sound) {
  remove_leftovers(options_.folder);
}

template <class Write>
bool CheckpointWriter::try_to_save(const fs::path& file, Write&& write) {
  try {
    write();
    return true;
  } catch (const EnvironmentError& error) {
    const std::string newest = newest_sound_.empty()
                                   ? "there is no checkpoint yet"
                                   : "the newest sound checkpoint is " + newest_sound_.string();
    console_.warn(fmt::format(
        "lockstep: warning: {} is not saved\n  why: {}: {}\n  try: {}; training goes on, {}",
        file.string(),
        error.what(),
        error.why(),
        advice_of(error),
        newest));
    return false;
  }
}

void CheckpointWriter::save(const nn::Module& model,
                            const nn::Optimizer& optimizer,
                            const TrainingPosition& at) {
  const fs::path file = options_.folder / model_file_name(at.steps);
  last_is_saved_ = try_to_save(file, [&] {
    CheckpointRecord record{.run = run_, .at = at, .model_digest = {}};
    write_model(file, record, file_tensors(model.state()));
    write_state(file, record, file_tensors(optimizer.state()));
    newest_sound_ = file;
    mark_last(file);
    remove_superseded(options_.folder, at.steps, options_.keep);
  });
  if (!last_is_saved_) remove_leftovers(options_.folder);
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
  const fs::path file = options_.folder / name;
  try_to_save(file, [&] {
    CheckpointRecord record{.run = run, .at = at, .model_digest = {}};
    write_model(file, record, file_tensors(model.state()));
  });
}

}  // namespace lockstep::trainers
