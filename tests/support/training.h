// Training steps of one rank on given tensors, for tests of whole models.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "comm/gradient_reducer.h"
#include "comm/single.h"
#include "core/communicator.h"
#include "kernels/reduce/tree_sum.h"
#include "nn/functional.h"
#include "nn/module.h"
#include "nn/optimizer.h"

namespace lockstep::testing {

struct MicroBatch {
  Tensor images;  // f32
  Tensor labels;
  Shards shards;
  Draws draws = {};
};

// Owns the optimizer and the reducer; borrows the rest.
class TrainingStep {
 public:
  TrainingStep(Stream& stream,
               Communicator& ranks,
               nn::Module& model,
               const kernels::SgdParams& sgd,
               comm::ReducerOptions options = {})
      : stream_(stream),
        model_(model),
        reducer_(ranks, stream, model.parameters(), model.parameter_names(), std::move(options)),
        optimizer_(model.named_parameters(), sgd) {}

  // Runs forward and backward passes and reduces the gradients, without an update. Returns this
  // rank's loss.
  float gradients(const Tensor& images, const Tensor& labels, const Shards& shards) {
    optimizer_.zero_grad();
    const float loss = backward({images, labels, shards, {}});
    reducer_.finish();
    return loss;
  }

  float run(const Tensor& images, const Tensor& labels, const Shards& shards) {
    const float loss = gradients(images, labels, shards);
    optimizer_.step(stream_);
    return loss;
  }

  // Runs one optimizer step over several micro-steps.
  void run(std::span<const MicroBatch> batches) {
    optimizer_.zero_grad();
    backward(batches[0]);
    for (const MicroBatch& batch : batches.subspan(1)) {
      reducer_.next_micro_step();
      backward(batch);
    }
    reducer_.finish();
    optimizer_.step(stream_);
  }

  const nn::Sgd& optimizer() const { return optimizer_; }
  const comm::GradientReducer& reducer() const { return reducer_; }

 private:
  float backward(const MicroBatch& batch) {
    const Var x(batch.images,
                nn::make_batch(stream_, batch.shards, true, {}, nullptr, batch.draws));
    Var loss = nn::softmax_cross_entropy(model_.forward(x), batch.labels).loss;
    const Tensor leaves = loss.value();
    loss.backward();
    Tensor sum = Tensor::empty({1}, Dtype::kF32);
    kernels::tree_sum(stream_, leaves.view({leaves.numel(), 1}), sum);
    return *sum.data<float>();
  }

  Stream& stream_;
  nn::Module& model_;
  comm::GradientReducer reducer_;
  nn::Sgd optimizer_;
};

}  // namespace lockstep::testing
