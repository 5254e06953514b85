// Training in this process, of a narrow ResNet on small images: to look at tensors and count calls.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/single.h"
#include "core/transfer.h"
#include "data/synthetic.h"
#include "nn/cifar_resnet.h"
#include "trainers/loop/training.h"

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

// One rank, two shards, four images a step.
inline trainers::RunConfig tiny_config(Device device, int64_t steps) {
  trainers::RunConfig config;
  config.device = device;
  config.arch = "resnet8";
  config.dataset = "shapes";
  config.val_batch_size = 4;
  config.epochs = 100;
  config.max_steps = steps;
  config.eval_freq = 1000;
  config.optimizer.lr = 0.01;
  config.optimizer.momentum = 0.9;
  config.optimizer.weight_decay = 1e-4;
  config.global_batch = 4;
  config.shards = 2;
  config.print_freq = 4;
  return config;
}

struct TinyResult {
  trainers::TrainingResult training;
  std::vector<Tensor> weights;  // on the CPU, and running statistics
};

using MakeTiny = std::function<std::unique_ptr<nn::Module>(const nn::Init&)>;

inline std::unique_ptr<nn::Module> make_resnet8(const nn::Init& init) {
  return std::make_unique<nn::CifarResNet>(init, 8);
}

// A network of eight layers unless said otherwise; what it costs on the CPU's device counts
// nowhere. `prepare` is called first.
inline TinyResult train_tiny(
    const trainers::RunConfig& config,
    const MakeTiny& make = make_resnet8,
    const std::function<void(Stream&)>& prepare = [](Stream&) {}) {
  const data::DatasetPair data = {.train = std::make_shared<TinyShapes>(42),
                                  .test = std::make_shared<TinyShapes>(4)};
  comm::SingleCommunicator alone;
  Stream stream(config.device);
  prepare(stream);
  Mt19937 rng(3);
  const std::unique_ptr<nn::Module> model = make(nn::Init{rng, config.device});
  trainers::Console console({.prints = false});
  trainers::Training training({config, data, alone, stream, *model, console, {}});
  TinyResult result{.training = training.run({}), .weights = {}};
  for (const nn::StateEntry& entry : model->state()) result.weights.push_back(to_cpu(entry.tensor));
  return result;
}

}  // namespace lockstep::testing
