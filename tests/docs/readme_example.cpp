// The C++ example of README.md, between two markers. tests/e2e/readme_example_test.cpp runs it.
#include <memory>

#include <fmt/core.h>

#include "comm/connect.h"
#include "comm/gradient_reducer.h"
#include "data/drawn_dataset.h"
#include "data/loader.h"
#include "kernels/reduce/tree_sum.h"
#include "nn/convnet.h"
#include "nn/functional.h"
#include "nn/optimizer.h"

namespace lockstep {

// README begins
// Trains the ConvNet on the built-in digits for 100 steps.
void train(Communicator& ranks) {
  Stream stream(Device::kCpu, 2);  // two threads
  Mt19937 rng(42);                 // PyTorch's generator gives PyTorch's initial weights
  nn::ConvNet model(nn::Init{rng});
  nn::Sgd optimizer(model.named_parameters(), {.lr = 0.02F, .momentum = 0.9F});
  comm::GradientReducer reducer(ranks, stream, model.parameters(), model.parameter_names());

  const auto digits = std::make_shared<data::Digits>(data::Digits::Split::kTrain);
  data::BatchPlan plan = {.dataset_size = digits->size(), .global_batch = 64, .shards = 8};
  plan.groups = 8;  // batch norm takes its statistics over one shard
  plan.rank = ranks.rank();
  plan.ranks = ranks.size();
  data::Loader loader(digits, data::training_sequence(plan, 0, 100), {});
  while (loader.left() > 0) {
    const data::LoadedBatch batch = loader.next();
    const Var images = nn::normalize_image(batch.images, nn::make_batch(stream, batch.shards));
    Var loss = nn::softmax_cross_entropy(model.forward(images), batch.labels).loss;
    Tensor mean = Tensor::empty({1}, Dtype::kF32);
    kernels::tree_sum(stream, loss.value().view({batch.shards.local(), 1}), mean);
    ranks.all_reduce_sum(mean.span<float>());
    if (ranks.rank() == 0) fmt::print("step {} loss {}\n", batch.number, *mean.data<float>());
    optimizer.zero_grad();
    loss.backward();         // gives each parameter one gradient a shard
    reducer.finish();        // sums them over shards, then ranks, in one tree
    optimizer.step(stream);  // updates the parameters in place
  }
}
// README ends

}  // namespace lockstep

int main() {
  const lockstep::comm::Connection job = lockstep::comm::connect(lockstep::comm::read_launch());
  lockstep::train(*job.ranks);
}
