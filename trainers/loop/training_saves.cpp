#include "trainers/loop/training_saves.h"

#include <utility>

#include "trainers/report/errors.h"

namespace lockstep::trainers {

void TrainingSaves::open(const Places& places) {
  places_ = places;
  if (places_.checkpoints != nullptr) places_.checkpoints->reserve(state());
  if (places_.keeper != nullptr) places_.keeper->reserve(state());
}

bool TrainingSaves::checkpoint_due(int64_t step) const {
  const std::optional<int64_t>& save_steps = parts_.run.request.save_steps;
  return save_steps && step % *save_steps == 0;
}

bool TrainingSaves::kept_state_due(int64_t step) const {
  const int64_t every = parts_.run.request.kept_steps;
  return every > 0 && !parts_.replay && step % every == 0;
}

void TrainingSaves::save(const TrainingPosition& position) {
  const SavedFiles files = std::exchange(files_, {});
  if (parts_.replay || !files.any()) return;
  on_rank_0(parts_.ranks, "saving a checkpoint", [&] {
    if (places_.checkpoints == nullptr) return;
    const TimelineSpan span(step_.timeline(), "checkpoint");
    places_.checkpoints->save(files, state(), position);
  });
}

void TrainingSaves::advance() {
  if (places_.checkpoints != nullptr) places_.checkpoints->advance();
}

std::optional<bool> TrainingSaves::finish() {
  std::optional<bool> saved;
  if (parts_.replay) return saved;
  on_rank_0(parts_.ranks, "saving a checkpoint", [&] {
    if (places_.checkpoints == nullptr) return;
    const TimelineSpan span(step_.timeline(), "checkpoint");
    places_.checkpoints->finish();
    saved = places_.checkpoints->last_is_saved();
  });
  return saved;
}

void TrainingSaves::keep(const TrainingPosition& position) {
  finish();
  if (places_.keeper == nullptr) return;
  const TimelineSpan span(step_.timeline(), "keep in memory");
  places_.keeper->keep(state(), position);
}

}  // namespace lockstep::trainers
