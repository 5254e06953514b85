// Training in this process, of a narrow ResNet on small images: to look at tensors and count calls.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "comm/single.h"
#include "core/transfer.h"
#include "data/synthetic.h"
#include "nn/cifar_resnet.h"
#include "tests/emulated_train/flags_of_all_runs.h"
#include "tests/emulated_train/tiny_resnet.h"
#include "tests/support/close.h"
#include "trainers/loop/training_parts.h"

namespace lockstep::testing {

// Random images under a name that has them cropped and flipped.
class TinyShapes : public data::Dataset {
 public:
  explicit TinyShapes(int64_t images) : random_({.images = images, .shape = {3, 8, 8}}) {}

  std::string name() const override { return "shapes/tiny"; }
  int64_t size() const override { return random_.size(); }
  int64_t classes() const override { return random_.classes(); }
  data::ImageShape image_shape() const override { return random_.image_shape(); }
  int32_t label(int64_t i) const override { return random_.label(i); }
  void read(int64_t i, std::span<uint8_t> pixels) const override { random_.read(i, pixels); }
  std::string digest() const override { return random_.digest(); }

 private:
  data::Synthetic random_;
};

// One rank, two shards, four images per step.
inline trainers::ResolvedRun tiny_run(Device device, int64_t steps) {
  trainers::ResolvedRun run{.batch = {.images = 4, .shards = 2}};
  trainers::RunRequest& request = run.request;
  request.device = device;
  request.arch = "resnet8";
  request.dataset = "shapes";
  request.test.batch = 4;
  request.epochs = 100;
  request.max_steps = steps;
  request.eval_freq = 1000;
  request.optimizer.lr = 0.01;
  request.optimizer.momentum = 0.9;
  request.optimizer.weight_decay = 1e-4;
  request.print_freq = 4;
  request.graph = std::ranges::count(flags_of_all_runs(), "--no-graph") == 0;
  return run;
}

struct TinyResult {
  TrainingResult training;
  std::vector<Tensor> weights;  // on the CPU, and running statistics
};

using MakeTiny = std::function<std::unique_ptr<nn::Module>(const nn::Init&)>;

inline std::unique_ptr<nn::Module> make_resnet8(const nn::Init& init) {
  return std::make_unique<nn::CifarResNet>(init, 8);
}

inline std::unique_ptr<nn::Module> make_tiny_resnet(const nn::Init& init) {
  return std::make_unique<TinyResNet>(init);
}

// The cost of the run on the CPU's device counts nowhere. `prepare` is called first.
inline TinyResult train_tiny(
    const trainers::ResolvedRun& run,
    const MakeTiny& make = make_tiny_resnet,
    const std::function<void(Stream&)>& prepare = [](Stream&) {},
    int64_t pool_bytes = 0,
    const std::shared_ptr<const data::Dataset>& train = std::make_shared<TinyShapes>(42)) {
  const data::DatasetPair data = {.train = train, .test = std::make_shared<TinyShapes>(4)};
  comm::SingleCommunicator alone;
  Stream stream(run.request.device);
  prepare(stream);
  Mt19937 rng(3);
  const std::unique_ptr<nn::Module> model = make(nn::Init{rng, run.request.device});
  trainers::Console console({.prints = false});
  StepInputs inputs = trainers::step_inputs(run, data, alone, stream, *model);
  inputs.pool_bytes = pool_bytes;
  const trainers::TrainingParts parts{std::move(inputs), run, console};
  TrainingObserver observer;
  Training training(parts, trainers::training_plan(parts), observer);
  training.share_weights();
  TinyResult result{.training = training.run(), .weights = {}};
  for (const nn::StateEntry& entry : model->state()) result.weights.push_back(to_cpu(entry.tensor));
  return result;
}

inline void expect_same_weights(const TinyResult& got, const TinyResult& want) {
  ASSERT_FALSE(want.weights.empty());
  ASSERT_EQ(got.weights.size(), want.weights.size());
  for (size_t i = 0; i < want.weights.size(); ++i) {
    EXPECT_TRUE(same_bits(got.weights[i], want.weights[i])) << "tensor " << i;
  }
}

// Largest difference of any tensor's elements over that tensor's largest, or over 0.1: biases begin
// at 0, and their gradients are sums in which much cancels. Other tensors, or none, are infinitely
// far away.
inline double distance(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.empty() || a.size() != b.size()) return INFINITY;
  double farthest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].shape() != b[i].shape()) return INFINITY;
    if (a[i].dtype() != Dtype::kF32) continue;
    double most = 0, largest = 0;
    for (int64_t k = 0; k < a[i].numel(); ++k) {
      const double one = a[i].data<float>()[k], other = b[i].data<float>()[k];
      most = std::max(most, std::isfinite(one - other) ? std::abs(one - other) : INFINITY);
      largest = std::max(largest, std::abs(one));
    }
    farthest = std::max(farthest, most / std::max(largest, 0.1));
  }
  return farthest;
}

}  // namespace lockstep::testing
