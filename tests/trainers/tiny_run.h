// A network and an optimizer of a few hundred bytes, and the contents of their run's checkpoint.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/digest.h"
#include "nn/layers.h"
#include "nn/optimizer.h"
#include "tests/support/random_tensor.h"
#include "trainers/checkpoint/checkpoint_file.h"

namespace lockstep::testing {

using namespace trainers;  // what these helpers are about

class TinyNet : public nn::Module {
 public:
  explicit TinyNet(const nn::Init& init, int64_t classes = 3)
      : conv_(init, {.in_channels = 1, .out_channels = 2, .kernel = 3, .pad = 1}),
        bn_(init, 2, {.activation = nn::Activation::kRelu}),
        fc_(init, {2, 4, 4}, classes) {
    register_module("conv", conv_);
    register_module("bn", bn_);
    register_module("fc", fc_);
  }
  Var forward(const Var& x) override { return fc_.forward(bn_.forward(conv_.forward(x))); }

 private:
  nn::Conv2d conv_;
  nn::BatchNorm bn_;
  nn::Linear fc_;
};

// Different seeds give different values in every tensor.
struct TinyRun {
  explicit TinyRun(uint64_t seed, int64_t classes = 3, float momentum = 0.9F)
      : rng(seed),
        model(nn::Init{rng}, classes),
        optimizer(model.named_parameters(), {.lr = 0.1F, .momentum = momentum}) {
    for (const auto& entries : {model.state(), optimizer.state()}) {
      for (const nn::StateEntry& entry : entries) fill(entry.tensor, ++seed);
    }
  }

  static void fill(Tensor tensor, uint64_t seed) {
    if (tensor.dtype() == Dtype::kI64) {
      *tensor.data<int64_t>() = static_cast<int64_t>(seed);
      return;
    }
    const Tensor values = lockstep::testing::random_tensor(tensor.shape(), 1000 * seed);
    std::memcpy(tensor.bytes(), values.bytes(), tensor.nbytes());
  }

  uint64_t digest() const {
    return state_digest(model) ^ digest_of_row_major(file_tensors(optimizer.state()));
  }

  Mt19937 rng;
  TinyNet model;
  nn::Sgd optimizer;
};

inline RunIdentity tiny_identity() {
  return {.program = "train_convnet",
          .arch = "convnet",
          .global_batch = 64,
          .micro_steps = 2,
          .shards = 8,
          .bn_groups = 4,
          .seeds = {.run = 7, .order = 8, .weights = 9},
          .start_epoch = 1,
          .data_digest = "0123456789abcdef",
          .environment = {{"isa", "x86-64-v3"},
                          {"lockstep", "0.1.0"},
                          {"onednn", "2.6.3"},
                          {"predivide", "1"},
                          {"wire", "f32"}},
          .settings = {{"lr", "0.1"}, {"momentum", "0.9"}},
          .evaluation = {.flags = {{"arch", "convnet"}, {"normalize", "0.1307,0.3081"}},
                         .image = "1x28x28",
                         .class_names = {"ants", "bees"}}};
}

inline TrainingPosition tiny_position(int64_t steps) {
  return {.steps = steps,
          .applied = std::max<int64_t>(0, steps - 1),
          .epoch = 3,
          .sums = {.steps = std::min<int64_t>(5, steps),
                   .images = 320,
                   .loss = 1.0 / 3,
                   .correct1 = 100,
                   .correct5 = 200},
          .best = {.correct1 = 77, .correct5 = 90, .total = 100, .loss = 0.1},
          .best_epoch = 2,
          .schedule = ScheduleState{.factor = 0.5, .plateau = {.best = 1.0 / 3, .bad_epochs = 3}},
          .early_stopping = EarlyStopping::State{.best = 1.0 / 7, .worse_epochs = 1}};
}

// Writes both files of a checkpoint.
inline std::filesystem::path write_tiny(const std::filesystem::path& folder,
                                        const TinyRun& run,
                                        int64_t steps) {
  const std::string name = model_file_name(steps);
  CheckpointRecord record{
      .run = tiny_identity(), .position = tiny_position(steps), .model_digest = {}};
  write_checkpoint(Folder(folder),
                   name,
                   record,
                   file_tensors(run.model.state()),
                   file_tensors(run.optimizer.state()));
  return folder / name;
}

}  // namespace lockstep::testing
