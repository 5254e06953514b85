// Updates the weights once a step's gradients are summed: learning rate, loss scale, clipping,
// optimizer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "engine/settings/training_settings.h"
#include "engine/update/parameter_groups.h"
#include "engine/update/schedule.h"
#include "engine/update/training_position.h"
#include "engine/update/weights.h"
#include "nn/grad_clipper.h"
#include "nn/grad_scaler.h"
#include "nn/optimizer.h"

namespace lockstep {

// The loss scale after a step.
struct ScaledStep {
  float scale = 1;
  int64_t skipped = 0;            // steps of the run so far
  int64_t consecutive_skips = 0;  // up to this step
  int64_t newly_skipped = 0;      // since the last read_scale(), or since the run resumed
};

// Apex's line, with the scale after a skipped step; Apex itself does not skip by a static scale.
std::string overflow_line(bool dynamic, float scale);

// Functions of the caller's own that take part in the update. Each may be empty.
struct UpdateHooks {
  std::function<double(int64_t step)> rate = {};  // instead of the schedule's; step 0 is the first
  // Instead of the settings' optimizer. The rate is set before each step.
  std::function<std::unique_ptr<nn::Optimizer>(const std::vector<nn::NamedParameter>& parameters)>
      make_optimizer = {};
};

// Owns the optimizer and its state. Thread safety: none.
class WeightUpdate {
 public:
  // `step_images`: images per step of all ranks together.
  WeightUpdate(const TrainingSettings& settings,
               int64_t step_images,
               Stream& stream,
               const nn::Module& model,
               int64_t steps_per_epoch,
               UpdateHooks hooks = {});

  // Call this after other code has written the parameters, before the first step too.
  void weights_were_written();

  nn::Optimizer& optimizer() { return *optimizer_; }
  const nn::Optimizer& optimizer() const { return *optimizer_; }

  // The weights' moving average; null without one.
  const nn::Ema* average() const { return dynamic_cast<const nn::Ema*>(optimizer_.get()); }
  // Calls `use` while the model is the average. Requires: average().
  void with_average(FunctionRef<void()> use);

  // Returns the gradient from which backward() starts, for a loss of this many leaves; undefined:
  // ones.
  Tensor seed(int64_t leaves) const;
  // Takes step `number`, from 0 over all epochs, with gradients that are summed over ranks.
  void step(int64_t number);
  // Whether a parameter that the previous step changed keeps its value from this step on.
  bool trains_fewer_from(int64_t number) const;
  // Call this after the last step of all epochs.
  void finish();
  int64_t end() const { return steps_.end; }
  // Reads which of the `steps` taken so far were applied; waits for the device. Call it before
  // lr(), describe() or optimizer().state(). Errors: DivergedError after too many skipped steps in
  // a row.
  ScaledStep read_scale(int64_t steps);
  double lr() const { return lr_; }  // of the last step
  ScaledStep scaled() const;         // after the last step, or as restored

  // Returns the new rate if the schedule cuts it.
  std::optional<double> end_epoch(int64_t epoch, double validation_loss, double accuracy);
  bool watches_validation() const { return schedule_.watches_validation(); }

  // Fills in how many of position.steps were applied, and the states of schedule and loss scale.
  void describe(TrainingPosition& position) const;
  void restore(const TrainingPosition& position);

 private:
  double rate_of(int64_t step) const { return rate_ ? rate_(step) : schedule_.lr(step); }
  void follow_schedule();

  Stream& stream_;
  const StoredWeights stored_;
  const bool may_skip_;  // loss scaling
  const std::unique_ptr<nn::Optimizer> optimizer_;
  const std::function<double(int64_t step)> rate_;  // empty: the schedule's
  Schedule schedule_;
  struct Steps {
    int64_t first = 0, end = 0;  // of all epochs, counted from epoch 0
    int64_t most = 0;            // that are taken
  };
  const Steps steps_;
  std::vector<TrainedAtFirst> trained_at_first_;
  std::optional<nn::GradScaler> scaler_;  // on CUDA always: steps are counted there
  std::optional<nn::GradClipper> clipper_;
  double lr_ = 0;
  int64_t skips_seen_ = 0;
};

}  // namespace lockstep
