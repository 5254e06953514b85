// Exact distributed evaluation: each image counts once, and the figures are the same on any number
// of ranks.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/communicator.h"
#include "core/safetensors.h"
#include "core/stream.h"
#include "data/dataset.h"
#include "nn/module.h"
#include "trainers/config/run_request.h"
#include "trainers/loop/skipped_photos.h"
#include "trainers/loop/training_parts.h"
#include "trainers/loop/training_step.h"
#include "trainers/model/forward_views.h"
#include "trainers/report/console.h"
#include "trainers/report/mistakes.h"
#include "trainers/report/training_result.h"

namespace lockstep::trainers {

// Outputs of an evaluation besides its figures; null: not wanted.
struct EvaluationOutputs {
  Mistakes* mistakes = nullptr;   // without pictures
  Safetensors* logits = nullptr;  // as LogitCollector (trainers/loop/save_logits.h) has them
};

struct EvaluationTask {
  nn::Module& model;
  std::shared_ptr<const data::Dataset> dataset;
  TestInput input = {};
  Precision precision = {};
  int64_t chunk_images = 250;
  bool loss_div_batch = false;                          // a chunk's loss is divided by its images
  int64_t workers = 0;                                  // threads that read ahead
  std::function<void(const std::string& text)> warn{};  // of an image that is skipped; rank 0's
  // After each batch of this rank, counted from 0; may be empty.
  std::function<void(int64_t batch, int64_t batches, const TestMetrics&)> on_batch{};
  // Called before each batch of any rank; true on one rank stops the evaluation on all. May be
  // empty.
  std::function<bool()> stop{};
  EvaluationOutputs outputs = {};
  SkippedPhotos* skipped = nullptr;  // of earlier evaluations too; null: of this one alone
};

// Returns the evaluation of the whole test set. It prints main.py's lines to `console`, where the
// run has them; the console must outlive the task.
EvaluationTask evaluation_task(const RunRequest& request,
                               const data::DatasetPair& data,
                               nn::Module& model,
                               Console& console);

// Cuts the data set into chunks; chunk c runs on rank c mod ranks, on one thread. Counts are
// integers. A chunk's loss is summed in f64 in image order, and the chunks' losses in chunk order.
// The model is in evaluation mode meanwhile. All ranks must call this and hold the same weights and
// buffers. Returns nothing when a rank gave up. Errors: DataError when too many images cannot be
// read.
std::optional<Evaluation> evaluate(const EvaluationTask& task, Stream& stream, Communicator& ranks);

// Evaluates a training's network and its moving average on the test images, using the memory of its
// steps.
class TrainingEvaluation {
 public:
  // Both must outlive this.
  TrainingEvaluation(const TrainingParts& parts, TrainingStep& step);

  // A collective call. Returns nothing when a signal asked for a stop meanwhile.
  std::optional<Evaluation> measure();
  // The mistakes of the last measure(), without pictures.
  const Mistakes& mistakes() const { return mistakes_; }
  // Likewise for the weights' moving average. Requires: --ema.
  std::optional<Evaluation> measure_average();

 private:
  EvaluationTask task();

  const TrainingParts& parts_;
  TrainingStep& step_;
  SkippedPhotos skipped_;
  Mistakes mistakes_;
};

}  // namespace lockstep::trainers
