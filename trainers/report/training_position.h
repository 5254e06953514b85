// How far a training is.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/optim/loss_scale.h"
#include "trainers/model/early_stopping.h"
#include "trainers/model/schedule.h"
#include "trainers/report/training_result.h"

namespace lockstep::trainers {

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

}  // namespace lockstep::trainers
