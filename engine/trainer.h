// Training in steps, as train_convnet and train_resnet do it, without flags, files and output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/gradient_reducer.h"
#include "core/augmentation.h"
#include "core/autograd.h"
#include "core/communicator.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/safetensors.h"
#include "data/dataset.h"
#include "engine/settings/optimizer_options.h"
#include "engine/settings/schedule_options.h"
#include "engine/step/step_observer.h"
#include "kernels/image/normalize_image.h"
#include "nn/functional.h"
#include "nn/module.h"

#pragma GCC visibility push(default)
namespace lockstep {

struct PrecisionOptions {
  int level = 0;             // 0 to 3, as Apex's O0 to O3
  Dtype half = Dtype::kF16;  // the 16-bit type of levels above 0
};

// The resources of one rank.
struct RankOptions {
  Device device = Device::kCpu;
  int threads = 1;  // from 1 to 1024
  int workers = 0;  // threads that read images ahead; from 0 to 256
};

// How images become the network's input. Absent: as the data set's name says (docs/library.md).
struct ImageOptions {
  std::optional<kernels::NormalizeImageParams> normalize = {};  // of training and test images
  std::optional<Augmentation> augmentation = {};                // its seed is TrainerOptions'
};

struct TrainerOptions {
  int64_t batch = 64;  // images per step, over all ranks; from 1 to 1e9
  // Pieces that a step's images are cut into, and batch norm's groups; absent: one per rank and
  // thread, and one per rank. With both set, a run has the same bits on each number of ranks, a
  // power of two, that divides the shards.
  std::optional<int64_t> shards = {};
  std::optional<int64_t> batch_norm_groups = {};
  int64_t epochs = 1;  // from 1 to a million
  OptimizerOptions optimizer = {};
  ScheduleOptions schedule = {};
  double label_smoothing = 0;  // from 0 to below 1
  PrecisionOptions precision = {};
  uint64_t seed = 42;        // of the images' order, augmentation and dropout
  int64_t test_batch = 250;  // images per batch of an evaluation; from 1 to a million
  RankOptions rank = {};
  ImageOptions images = {};
  // Called on rank 0 with warnings: skipped steps, images that cannot be read, other classes.
  std::function<void(const std::string& text)> warn = {};
};

// Functions and objects of the caller's that take part in the steps. Ranks do not compare them:
// give all ranks the same. Each may be absent.
struct TrainerHooks {
  std::function<double(int64_t step)> rate = {};  // of a step, from 0, instead of the schedule
  // Instead of options.optimizer. The rate is set before each step.
  std::function<std::unique_ptr<nn::Optimizer>(const std::vector<nn::NamedParameter>& parameters)>
      make_optimizer = {};
  comm::BucketExchange exchange = {};  // sums each bucket of gradients over the ranks
  TapeListener* listener = nullptr;    // sees each op of a step; borrowed
  StepObserver* observer = nullptr;    // sees the steps and their phases; borrowed
  // Instead of cross-entropy, of evaluations too; nn::mse_loss is one. Then there is no accuracy.
  nn::LossFunction loss = {};
};

struct StepReport {
  int64_t step = 0;     // from 1
  int64_t epoch = 0;    // from 0
  double loss = 0;      // mean over the step's images on all ranks
  double accuracy = 0;  // percent, before the update; 0 with TrainerHooks::loss
  double lr = 0;
  bool ends_epoch = false;
  bool skipped = false;  // a gradient was not finite, so that no weight has changed
};

struct EvaluationReport {
  int64_t correct = 0, correct5 = 0, images = 0;  // of them correct: 0 with TrainerHooks::loss
  double loss = 0;  // mean cross-entropy, in nats, or mean of TrainerHooks::loss

  double accuracy() const {  // percent
    return 100.0 * static_cast<double>(correct) / static_cast<double>(images);
  }
};

// Trains one network on the ranks of a communicator. Every function but the getters is a collective
// call: all ranks make the same calls in the same order. Owns the optimizer; borrows the
// communicator and the network. Thread safety: none; ranks that are threads have one each.
// Errors of all functions: lockstep::Error. After a CommError the trainer is of no more use.
class Trainer {
 public:
  // Gives all ranks rank 0's weights. Errors: UsageError for options that do not fit together, with
  // values that do, and for options, images or a network that differ between ranks, with both;
  // EnvironmentError for ranks of other versions or processor levels. `threads`, `workers` and
  // `warn` may differ; the smallest number of threads over ranks is used.
  Trainer(Communicator& ranks,
          nn::Module& network,
          data::DatasetPair images,
          const TrainerOptions& options,
          const TrainerHooks& hooks = {});
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  int64_t steps() const;  // taken so far
  int64_t steps_per_epoch() const;
  int64_t end() const;  // steps of all epochs together

  // Takes the next step. Requires: steps() < end(). Errors: DivergedError for a loss that is not
  // finite; DataError where too many images cannot be read, and on the CPU for a label without an
  // output of the network; ShapeError where the network does not take the data set's images;
  // UsageError where the loss does not depend on a parameter that requires a gradient, where one
  // was frozen or unfrozen after the trainer was made, and in a forked child.
  StepReport step();
  // Takes the steps that are left. `on_step` is called after each; false ends the training.
  void run(const std::function<bool(const StepReport& report)>& on_step = {});
  // All test images, each once. ScheduleKind::kPlateau goes by the evaluations at ends of epochs:
  // call this after each step that ends one.
  EvaluationReport evaluate();

  // The network's outputs for all test images, in their order: `logits` (images, classes) f32 and
  // `labels` (images) i64, or `targets` (images, K) f32, on rank 0; nothing on other ranks. The
  // same bits on any number of ranks.
  Safetensors logits();
  // Writes them, on rank 0. Errors: EnvironmentError.
  void save_logits(const std::filesystem::path& file);
  // Calls `use` while the network is the moving average of its weights: evaluate() and save() then
  // take that. A collective call. Errors: UsageError without optimizer.ema.
  void with_average(const std::function<void()>& use);

  // Weights and buffers, by PyTorch's names, as safetensors; rank 0 writes. Errors:
  // EnvironmentError.
  void save(const std::filesystem::path& file);
  // Reads such a file, or one of torch.save, on rank 0, for all ranks. Errors: CheckpointError
  // where it cannot be read, or where names or shapes differ from the network's. Warns where the
  // file records other classes than the test images have; PhotoOptions::classes takes them.
  void load(const std::filesystem::path& file);
  // Reads weights into a network of another number of classes: its last layer keeps its initial
  // weights where the file's has another number of outputs.
  void load_all_but_classifier(const std::filesystem::path& file);

  // The whole state of the training, as safetensors; rank 0 writes. A Trainer of the same network,
  // images and options goes on from it with the same bits, on another number of ranks too. Errors:
  // EnvironmentError.
  void save_state(const std::filesystem::path& file);
  // Goes on from such a file, which rank 0 reads. Errors: CheckpointError where it cannot be read,
  // or is the state of a training with another network, batch, seed or optimizer, or other images.
  void load_state(const std::filesystem::path& file);

 private:
  struct [[gnu::visibility("hidden")]] Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
#pragma GCC visibility pop
