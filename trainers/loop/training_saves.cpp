#include "trainers/loop/training_saves.h"

#include "trainers/report/errors.h"

namespace lockstep::trainers {

void TrainingSaves::open(const Places& places, Training& training) {
  places_ = places;
  training_ = &training;
  if (places_.checkpoints != nullptr) places_.checkpoints->reserve(state());
  if (places_.keeper != nullptr) places_.keeper->reserve(state());
}

SnapshotSource TrainingSaves::state() const {
  return {parts_.stream, parts_.model, training_->update().optimizer()};
}

bool TrainingSaves::checkpoint_due(int64_t step) const {
  const std::optional<int64_t>& save_steps = parts_.run.request.save_steps;
  return save_steps && step % *save_steps == 0;
}

bool TrainingSaves::kept_state_due(int64_t step) const {
  const int64_t every = parts_.run.request.kept_steps;
  return every > 0 && !parts_.replay && step % every == 0;
}

void TrainingSaves::save(const SavedFiles& files) {
  if (parts_.replay || !files.any()) return;
  on_rank_0(parts_.ranks, "saving a checkpoint", [&] {
    if (places_.checkpoints == nullptr) return;
    const TimelineSpan span(training_->step().timeline(), "checkpoint");
    places_.checkpoints->save(files, state(), training_->position());
  });
}

void TrainingSaves::save_checkpoint() {
  save({.average = training_->update().average() != nullptr, .checkpoint = true});
}

void TrainingSaves::advance() {
  if (places_.checkpoints != nullptr) places_.checkpoints->advance();
}

std::optional<bool> TrainingSaves::finish() {
  std::optional<bool> saved;
  if (parts_.replay) return saved;
  on_rank_0(parts_.ranks, "saving a checkpoint", [&] {
    if (places_.checkpoints == nullptr) return;
    const TimelineSpan span(training_->step().timeline(), "checkpoint");
    places_.checkpoints->finish();
    saved = places_.checkpoints->last_is_saved();
  });
  return saved;
}

void TrainingSaves::keep() {
  finish();
  if (places_.keeper == nullptr) return;
  const TimelineSpan span(training_->step().timeline(), "keep in memory");
  places_.keeper->keep(state(), training_->position());
}

}  // namespace lockstep::trainers
