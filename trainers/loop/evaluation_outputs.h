// How a program evaluates, and what it keeps of the outputs.
#pragma once

#include "core/safetensors.h"
#include "engine/evaluation/evaluate.h"
#include "engine/evaluation/logits.h"
#include "trainers/config/run_request.h"
#include "trainers/loop/find_mistakes.h"
#include "trainers/report/console.h"
#include "trainers/report/mistakes.h"

namespace lockstep::trainers {

// Outputs of an evaluation besides its figures; null: not wanted.
struct EvaluationOutputs {
  Mistakes* mistakes = nullptr;   // without pictures
  Safetensors* logits = nullptr;  // as LogitCollector has them
};

class OutputCollector final : public EvaluationObserver {
 public:
  OutputCollector(const EvaluationOutputs& wanted, const data::Dataset& images)
      : wanted_(wanted), finder_(images.classes()) {}

  void add(const EvaluatedImages& images) override;
  void settle(const data::EvaluationPlan* plan, Communicator& ranks) override;

 private:
  const EvaluationOutputs wanted_;
  MistakeFinder finder_;
  LogitCollector collector_;
};

// Returns the evaluation of the whole test set. It prints main.py's lines to `console`, where the
// run has them; the console must outlive the task.
EvaluationTask evaluation_task(const RunRequest& request,
                               const data::DatasetPair& data,
                               nn::Module& model,
                               Console& console);

}  // namespace lockstep::trainers
