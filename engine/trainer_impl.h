// Members of a Trainer. For its own sources alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/replicas.h"
#include "engine/evaluation/evaluate.h"
#include "engine/settings/batch_division.h"
#include "engine/state/training_state.h"
#include "engine/step/training_step.h"
#include "engine/trainer.h"

namespace lockstep {

class ListenedSteps final : public StepObserver {
 public:
  explicit ListenedSteps(TapeListener* listener) : listener_(listener) {}

  bool needs_host() override { return listener_ != nullptr; }
  TapeListener* listener(const Shards& /*shards*/) override { return listener_; }

 private:
  TapeListener* const listener_;
};

// Members are constructed in this order: later ones refer to earlier ones.
struct Trainer::Impl {
  Impl(Communicator& ranks,
       nn::Module& network,
       data::DatasetPair images,
       const TrainerOptions& options,
       const TrainerHooks& hooks);

  void say(const std::string& text) const {
    if (warn) warn(text);
  }
  void share_weights() {
    std::vector<Tensor> tensors = nn::tensors_of(inputs.model.state());
    comm::broadcast_tensors(inputs.ranks, tensors, step->device_peers());
    step->update().weights_were_written();
  }
  // Batch norm's statistics are rank 0's.
  void share_buffers() {
    std::vector<Tensor> buffers;
    for (const nn::StateEntry& entry : inputs.model.state()) {
      if (!entry.is_parameter) buffers.push_back(entry.tensor);
    }
    comm::broadcast_tensors(inputs.ranks, buffers, step->device_peers());
  }
  void check_loss(float loss, double lr) const;
  Evaluation evaluate(EvaluationObserver* other);  // null: the figures are all
  // Reads weights on rank 0, for all ranks. Errors: those of Trainer::load.
  std::map<std::string, std::string> read(const std::filesystem::path& file, Classifier classifier);
  TrainingState state() const;
  // Settings that must be the same where a training goes on, by name.
  std::map<std::string, std::string> fixed_settings() const;
  // Errors: CheckpointError where the state in `file` is of other settings, or of another network
  // or optimizer.
  void check_fits(const TrainingState& read, const std::string& file) const;
  // Goes on from the state that rank 0 has.
  void go_on(const TrainingState& state);

  const data::DatasetPair data;
  const TrainingSettings settings;
  const int64_t threads;
  const BatchDivision batch;
  Stream stream;
  const std::function<void(const std::string& text)> warn;
  const StepInputs inputs;
  StepRange range;
  ListenedSteps observer;
  std::unique_ptr<TrainingStep> step;  // made again where a training goes on
  SkippedPhotos skipped_tests;
  struct {
    int64_t steps = 0;
    int64_t evaluated_epochs = 0;  // that the schedule knows
    bool averages = false;         // in with_average()
  } done;
};

}  // namespace lockstep
