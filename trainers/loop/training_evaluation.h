// A training's test images, and what the network makes of them.
#pragma once

#include <optional>

#include "trainers/checkpoint/checkpoint_writer.h"
#include "trainers/loop/evaluate.h"
#include "trainers/loop/skipped_photos.h"
#include "trainers/loop/training_parts.h"
#include "trainers/loop/weight_update.h"

namespace lockstep::trainers {

class TrainingEvaluation {
 public:
  // `parts` must outlive this.
  explicit TrainingEvaluation(const TrainingParts& parts);

  // A collective call. Nothing when a signal asked for a stop meanwhile.
  std::optional<Evaluation> measure();
  // Likewise of the weights' moving average, which `checkpoints` then save with `at`; null: nobody
  // does. Requires: --ema.
  std::optional<Evaluation> measure_average(WeightUpdate& update,
                                            CheckpointWriter* checkpoints,
                                            const TrainingPosition& at);

 private:
  EvaluationTask task();

  const TrainingParts& p_;
  SkippedPhotos skipped_;
};

}  // namespace lockstep::trainers
