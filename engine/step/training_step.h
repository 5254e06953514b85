// Takes optimizer steps: batches, forward and backward, exchange of gradients, update.
#pragma once

#include <span>

#include "comm/gradient_reducer.h"
#include "engine/step/exchange_log.h"
#include "engine/step/skipped_photos.h"
#include "engine/step/step_figures.h"
#include "engine/step/step_graph.h"
#include "engine/step/step_inputs.h"
#include "engine/step/step_observer.h"
#include "engine/step/training_batches.h"
#include "engine/update/weight_update.h"

namespace lockstep {

// Calls a loss of the caller's. Errors: also UsageError where it does not return the leaves that
// nn::LossFunction asks for.
Var own_loss(const nn::LossFunction& loss, const Var& output, const Tensor& targets);

class TrainingStep {
 public:
  // All must outlive this. A collective call.
  TrainingStep(const StepInputs& inputs, const StepRange& range, StepObserver& observer);

  struct Seconds {
    double all = 0;
    double data = 0;  // waited for images
  };
  // Takes step `number`, from 0 over all epochs. Errors: CommError, DataError.
  Seconds take(int64_t number);
  // The figures of the steps since the last call, over all ranks. A collective call. Errors:
  // DataError when too many images cannot be read.
  WindowTotals exchange_figures(bool stop);
  // Whether the exchange of gradients tells all ranks when one was asked to stop.
  bool agrees_on_stops() const { return reducer_.asks(); }
  // Whether a rank was asked to stop before all gradients of the last step were ready.
  bool asked_to_stop() const { return reducer_.any_said_yes(); }
  // A collective call.
  ExchangeSummary summarize() const { return exchange_log_.summarize(inputs_.ranks); }

  Timeline* timeline() { return observer_.timeline(); }  // null: nothing is recorded
  WeightUpdate& update() { return update_; }
  const WeightUpdate& update() const { return update_; }
  std::span<const comm::Bucket> buckets() const { return reducer_.buckets(); }
  // For work between steps: StepGraph's.
  cuda::MemoryPool::Use use_memory() const { return graph_.use_memory(); }
  DevicePeers* device_peers() { return reducer_.device_peers(); }

 private:
  struct Start {
    comm::BucketTimes::Clock::time_point time = comm::BucketTimes::Clock::now();
    Traffic traffic;
    double batch_norm_s = 0;  // waited for peers, since the beginning of the run
    double data_s = 0;        // waited for images
    data::LoaderSeconds loader{};
  };

  bool runs_as_graph() const { return inputs_.as_graph && !observer_.needs_host(); }
  void take_as_graph(const Start& start, int64_t number);
  void sum_and_update(const Start& start, int64_t images, int64_t number);
  TrainingBatches::MicroStep next_batch();
  // Returns the figures of a micro-step.
  nn::CrossEntropy forward_backward(const Var& images, const Tensor& labels, const Tensor& mix);
  void log_exchange(const Start& start, int64_t images, const comm::ExchangeTimes& exchange);

  const StepInputs& inputs_;
  StepObserver& observer_;
  comm::GradientReducer reducer_;
  TimedPeers batch_norm_peers_;
  const bool groups_span_ranks_;
  WeightUpdate update_;
  TrainingBatches batches_;
  SkippedPhotos skipped_;
  StepGraph graph_;
  StepWindow window_;
  ExchangeLog exchange_log_;
};

}  // namespace lockstep
