// Exact distributed evaluation: each image counts once, and the figures are the same on any number
// of ranks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/communicator.h"
#include "core/stream.h"
#include "data/batch_plan.h"
#include "data/dataset.h"
#include "engine/evaluation/forward_views.h"
#include "engine/results/metrics.h"
#include "engine/results/training_result.h"
#include "engine/step/skipped_photos.h"
#include "nn/functional.h"
#include "nn/module.h"

namespace lockstep {

// Images of an evaluation with the network's outputs for them, all on the CPU.
struct EvaluatedImages {
  Tensor logits;   // (N,C) f32, f16 or bf16
  Tensor labels;   // (N) i32, or targets (N,K) f32
  Tensor indices;  // (N) i64, in the test set
  Tensor losses;   // (N) f32; undefined with a loss of the caller's
};

// Gets more than figures out of an evaluation.
class EvaluationObserver {
 public:
  virtual ~EvaluationObserver() = default;

  // After each batch of this rank, in their order.
  virtual void add(const EvaluatedImages& images) = 0;
  // After the last one. A collective call. `plan` is null where a rank gave up.
  virtual void settle(const data::EvaluationPlan* plan, Communicator& ranks) = 0;
};

struct EvaluationLoss {
  bool div_batch = false;     // a chunk's loss is divided by its images
  nn::LossFunction own = {};  // instead of cross-entropy; then no prediction counts as right
};

struct EvaluationTask {
  nn::Module& model;
  std::shared_ptr<const data::Dataset> dataset;
  TestInput input = {};
  Precision precision = {};
  int64_t chunk_images = 250;
  EvaluationLoss loss = {};
  int64_t workers = 0;                                  // threads that read ahead
  std::function<void(const std::string& text)> warn{};  // of an image that is skipped; rank 0's
  // After each batch of this rank, counted from 0; may be empty.
  std::function<void(int64_t batch, int64_t batches, const TestMetrics&)> on_batch{};
  // Called before each batch of any rank; true on one rank stops the evaluation on all. May be
  // empty.
  std::function<bool()> stop{};
  EvaluationObserver* observer = nullptr;
  SkippedPhotos* skipped = nullptr;  // of earlier evaluations too; null: of this one alone
};

// Cuts the data set into chunks; chunk c runs on rank c mod ranks, on one thread. Counts are
// integers. A chunk's loss is summed in f64 in image order, or by task.loss.own, which then sees a
// Shards::step_images of 1, so that the sum does not depend on the batch. The chunks' losses are
// summed in chunk order. The model is in evaluation mode meanwhile. All ranks must call this and
// hold the same weights and buffers. Returns nothing when a rank gave up. Errors: DataError when
// too many images cannot be read.
std::optional<Evaluation> evaluate(const EvaluationTask& task, Stream& stream, Communicator& ranks);

}  // namespace lockstep
