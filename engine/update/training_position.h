// How far a training is.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/results/training_result.h"
#include "engine/update/early_stopping.h"
#include "engine/update/schedule.h"
#include "kernels/optim/loss_scale.h"

namespace lockstep {

inline constexpr int64_t kMaxSkips = 50;  // steps in a row; then a run has diverged

// Sums over the steps of an epoch so far, over all ranks.
struct EpochSums {
  int64_t steps = 0;
  int64_t images = 0;
  double loss = 0;  // of the steps' losses; an epoch's last one, which may be short, counts in part
  int64_t correct1 = 0;
  int64_t correct5 = 0;
};

// A place in a run, between two steps.
struct TrainingPosition {
  int64_t steps = 0;    // attempted since epoch 0 began: what the sampler has dealt out
  int64_t applied = 0;  // of them, those that changed the weights
  int64_t epoch = 0;    // the current one, from 0
  EpochSums sums;       // of the current epoch
  Evaluation best;      // of all evaluations so far; of 0 images: none
  int64_t best_epoch = 0;
  std::optional<ScheduleState> schedule = {};
  std::optional<EarlyStopping::State> early_stopping = {};
  std::optional<kernels::LossScaleState> loss_scale = {};
};

}  // namespace lockstep
