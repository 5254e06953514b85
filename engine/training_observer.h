// Sees a training's epochs as well as its steps: for logs, checkpoints and whatever else a program
// does around them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/error.h"
#include "engine/results/metrics.h"
#include "engine/results/training_result.h"
#include "engine/step/step_observer.h"
#include "engine/update/weight_update.h"

namespace lockstep {

class EvaluationObserver;
class Training;

// The evaluations after an epoch, and what followed from them.
struct EpochEvaluation {
  Evaluation weights;
  std::optional<Evaluation> average = {};  // of the moving average of the weights
  bool is_best = false;                    // of all evaluations of `weights` so far
  std::optional<double> cut_rate = {};     // the new rate, where the schedule cut it
};

// Does nothing by default. All ranks call the same functions at the same steps, so that a function
// may communicate. An error that one throws ends the training.
class TrainingObserver : public StepObserver {
 public:
  virtual void begin_epoch(const Training& /*training*/) {}
  // A step has changed the weights. Its figures are not known yet. Gradients are summed over ranks
  // and multiplied by the loss scale that was current before the step.
  virtual void after_step(Training& /*training*/) {}
  // Whether the ranks exchange figures after this step in any case.
  virtual bool wants_figures(const Training& /*training*/) { return false; }
  // Steps were skipped because gradients overflowed: `text` has the new loss scale.
  virtual void on_overflow(const std::string& /*text*/) {}
  // The loss scale has been read.
  virtual void on_scale(Training& /*training*/, const ScaledStep& /*scaled*/) {}
  virtual void on_figures(Training& /*training*/, const StepMetrics& /*metrics*/) {}
  // The loss of a step, from 1, is not finite. Unless this throws, the training goes on.
  virtual void on_infinite_loss(Training& /*training*/,
                                float /*loss*/,
                                int64_t /*step*/,
                                const DivergedError& error) {
    throw DivergedError(error);
  }
  // The step is done, and its figures are known where they were due.
  virtual void end_step(Training& /*training*/) {}
  // Returns what sees the outputs; null: nothing does.
  virtual EvaluationObserver* begin_evaluation() { return nullptr; }
  virtual void end_evaluation(const Evaluation& /*evaluation*/) {}
  // `evaluation` is null after an epoch that was not evaluated.
  virtual void end_epoch(Training& /*training*/, const EpochEvaluation* /*evaluation*/) {}
};

}  // namespace lockstep
