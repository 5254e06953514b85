// One rank's training steps on tensors at hand, for tests of whole models.
#pragma once

#include <memory>

#include "comm/gradient_reducer.h"
#include "comm/single.h"
#include "core/communicator.h"
#include "kernels/tree_sum.h"
#include "nn/functional.h"
#include "nn/module.h"
#include "nn/optimizer.h"

namespace lockstep::testing {

// Owns: optimizer and reducer; borrows the rest.
class TrainingStep {
 public:
  TrainingStep(Stream& stream,
               Communicator& ranks,
               nn::Module& model,
               const kernels::SgdParams& sgd)
      : stream_(stream),
        model_(model),
        reducer_(ranks, stream, model.parameters(), model.parameter_names()),
        optimizer_(model.parameters(), sgd) {}

  // Forward and backward on f32 images; gradients are reduced, nothing is updated. Returns this
  // rank's loss.
  float gradients(const Tensor& images, const Tensor& labels, const Shards& shards) {
    optimizer_.zero_grad();
    const Var x(images, nn::make_batch(stream_, shards));
    Var loss = nn::softmax_cross_entropy(model_.forward(x), labels).loss;
    const Tensor leaves = loss.value();
    loss.backward();
    reducer_.finish();
    Tensor sum = Tensor::empty({1}, Dtype::kF32);
    kernels::tree_sum(stream_, leaves.view({leaves.numel(), 1}), sum);
    return *sum.data<float>();
  }

  float run(const Tensor& images, const Tensor& labels, const Shards& shards) {
    const float loss = gradients(images, labels, shards);
    optimizer_.step(stream_);
    return loss;
  }

 private:
  Stream& stream_;
  nn::Module& model_;
  comm::GradientReducer reducer_;
  nn::Sgd optimizer_;
};

}  // namespace lockstep::testing
