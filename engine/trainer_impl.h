// Members of a Trainer. For its own sources alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/evaluation/evaluate.h"
#include "engine/settings/batch_division.h"
#include "engine/state/training_state.h"
#include "engine/trainer.h"
#include "engine/training.h"

namespace lockstep {

// Keeps the figures of a step for its report, and passes on what it sees.
class StepReporter final : public TrainingObserver {
 public:
  // Borrows the hooks' objects.
  StepReporter(const TrainerHooks& hooks, std::function<void(const std::string& text)> say)
      : listener_(hooks.listener),
        observer_(hooks.observer != nullptr ? *hooks.observer : nobody_),
        say_(std::move(say)) {}

  const StepMetrics& figures() const { return figures_; }  // of the last step

  void begin_step(int64_t step) override { observer_.begin_step(step); }
  bool needs_host() override { return listener_ != nullptr || observer_.needs_host(); }
  TapeListener* listener(const Shards& shards) override {
    return listener_ != nullptr ? listener_ : observer_.listener(shards);
  }
  void begin_micro_step(const Var& images) override { observer_.begin_micro_step(images); }
  void begin_pass(Pass pass) override { observer_.begin_pass(pass); }
  void end_backward() override { observer_.end_backward(); }
  void before_sums() override { observer_.before_sums(); }
  void in_phase(std::string_view name, FunctionRef<void()> work) override {
    observer_.in_phase(name, work);
  }
  Timeline* timeline() override { return observer_.timeline(); }
  void on_overflow(const std::string& text) override { say_(text); }
  void on_figures(Training& training, const StepMetrics& metrics) override {
    figures_ = metrics;
    training.begin_line();
  }

 private:
  StepObserver nobody_;
  TapeListener* const listener_;
  StepObserver& observer_;
  const std::function<void(const std::string& text)> say_;
  StepMetrics figures_;
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
  // Makes the training, from its beginning or from `start`.
  void begin(const std::optional<TrainingPosition>& start);
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
  StepReporter reporter;
  std::unique_ptr<Training> training;  // made again where it goes on from a file
  int64_t evaluated_epochs = 0;        // that the schedule knows
  bool averages = false;               // in with_average()
};

}  // namespace lockstep
