#include "engine/trainer.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "comm/gather.h"
#include "core/error.h"
#include "engine/check_options.h"
#include "engine/compare_trainings.h"
#include "engine/evaluation/logits.h"
#include "engine/settings/batch_division.h"
#include "engine/settings/usual_images.h"
#include "engine/trainer_impl.h"

namespace lockstep {
namespace {

PrecisionConfig precision_config(const PrecisionOptions& options) {
  PrecisionConfig config = at_level(static_cast<OptLevel>(options.level));
  config.dtype = options.half;
  config.loss_scaling = usual_loss_scaling(config.level, config.dtype);
  return config;
}

// Errors: UsageError.
TrainingSettings settings_of(const TrainerOptions& options) {
  check_ranges(options);
  TrainingSettings settings;
  settings.device = options.rank.device;
  settings.epochs = static_cast<double>(options.epochs);
  settings.optimizer = options.optimizer;
  settings.schedule = options.schedule;
  settings.loss.label_smoothing = options.label_smoothing;
  settings.seeds = {options.seed, options.seed, options.seed};
  settings.precision = precision_config(options.precision);
  settings.workers = options.rank.workers;
  settings.test.batch = options.test_batch;
  return settings;
}

// Errors: UsageError where the data sets' samples or targets do not fit the options and the loss.
void check_samples(const data::DatasetPair& data,
                   const TrainerOptions& options,
                   const TrainerHooks& hooks) {
  const data::Dataset &train = *data.train, &test = *data.test;
  if (train.dtype() != test.dtype() || train.target_size() != test.target_size()) {
    const auto described = [](const data::Dataset& set) {
      return fmt::format("{} has {} and targets of {} floats",
                         set.name(),
                         name_of(set.dtype()),
                         set.target_size());
    };
    throw UsageError("training and test samples are of two kinds",
                     fmt::format("{}, {}", described(train), described(test)),
                     "data sets of the same kind");
  }
  if (train.dtype() == Dtype::kF32 && (options.images.normalize || options.images.augmentation)) {
    throw UsageError(
        fmt::format("images.{} is for images of 8 bits",
                    options.images.normalize ? "normalize" : "augmentation"),
        fmt::format("{} has f32 samples, which the network gets as they are", train.name()),
        "a data set that does it, or no such option");
  }
  if (train.target_size() > 0 && !hooks.loss) {
    throw UsageError(fmt::format("{} has targets instead of labels", train.name()),
                     "cross-entropy is a loss of labels",
                     "TrainerHooks::loss, such as nn::mse_loss");
  }
  if (hooks.loss && options.label_smoothing > 0) {
    throw UsageError("label_smoothing would change nothing",
                     "it is cross-entropy's, and TrainerHooks::loss takes its place",
                     "one of the two");
  }
}

ImageChanges changes_of(const TrainerOptions& options, const data::Dataset& train) {
  ImageChanges changes;
  if (train.dtype() == Dtype::kF32) return changes;
  changes.augmentation = options.images.augmentation.value_or(usual_augmentation(train));
  changes.augmentation.seed = options.seed;
  changes.normalize = options.images.normalize.value_or(usual_normalization(train));
  return changes;
}

int64_t fewest_threads(Communicator& ranks, const TrainerOptions& options) {
  return std::ranges::min(comm::gather_value(ranks, int64_t{options.rank.threads}));
}

// Errors: UsageError where the batch does not fit the ranks or the images.
BatchDivision divide(const TrainerOptions& options,
                     int64_t threads,
                     Communicator& ranks,
                     const data::Dataset& train) {
  const BatchRequest asked{
      .global = options.batch, .shards = options.shards, .bn_groups = options.batch_norm_groups};
  const BatchDivision batch = divide_batch(asked, options.rank.device, ranks.size(), threads);
  check_steps(asked, batch, train.size());
  return batch;
}

// A recorded graph calls no function of the caller's, and takes images.
bool needs_host(const TrainerHooks& hooks, const data::Dataset& train) {
  return hooks.exchange || hooks.make_optimizer || hooks.loss || train.dtype() == Dtype::kF32;
}

// Calls body(), which runs the network. Errors: its own, in a Trainer's terms; a ShapeError gets
// the shape of the images.
template <class Body>
auto with_errors_of_a_trainer(const data::Dataset& images, Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    throw EnvironmentError("out of memory",
                           "a step, an evaluation or the data set's read() got no more",
                           "a smaller batch, or fewer threads or workers",
                           Remedy::kSmallerBatch);
  } catch (const UsageError& error) {
    if (error.remedy() != Remedy::kUnusedZero) throw;
    throw UsageError(error.what(),
                     error.why(),
                     "use them in forward(), or freeze them with set_requires_grad(false) before "
                     "the Trainer is made");
  } catch (const ShapeError& error) {
    const data::ImageShape shape = images.image_shape();
    throw ShapeError(error.what(),
                     fmt::format("the network was given {}: images of {} x {} pixels, {} channels",
                                 images.name(),
                                 shape.height,
                                 shape.width,
                                 shape.channels),
                     "a network for such images, or images of another shape");
  }
}

class LogitObserver final : public EvaluationObserver {
 public:
  void add(const EvaluatedImages& images) override { rows_.add(images.logits, images.labels); }
  void settle(const data::EvaluationPlan* plan, Communicator& ranks) override {
    if (plan != nullptr) content_ = rows_.over_ranks(*plan, ranks);
  }
  const Safetensors& content() const { return content_; }

 private:
  LogitCollector rows_;
  Safetensors content_;
};

}  // namespace

Trainer::Impl::Impl(Communicator& ranks,
                    nn::Module& network,
                    data::DatasetPair images,
                    const TrainerOptions& options,
                    const TrainerHooks& hooks)
    : data(std::move(images)),
      settings(settings_of(options)),
      threads(fewest_threads(ranks, options)),
      batch(divide(options, threads, ranks, *data.train)),
      stream(settings.device, settings.device == Device::kCpu ? static_cast<int>(threads) : 1),
      warn(ranks.rank() == 0 ? options.warn : nullptr),
      inputs{
          .settings = settings,
          .batch = batch,
          .data = data,
          .ranks = ranks,
          .stream = stream,
          .model = network,
          .changes = changes_of(options, *data.train),
          .as_graph = !needs_host(hooks, *data.train) && fits_one_graph(settings, batch, false),
          .hooks = {.warn = [this](const std::string& text) { say("lockstep: warning: " + text); },
                    .exchange = hooks.exchange,
                    .update = {.rate = hooks.rate, .make_optimizer = hooks.make_optimizer},
                    .loss = hooks.loss}},
      reporter(hooks, [this](const std::string& text) { say(text); }) {
  begin(std::nullopt);
  training->share_weights();
}

void Trainer::Impl::begin(const std::optional<TrainingPosition>& start) {
  const int64_t per_epoch = lockstep::steps_per_epoch(batch, data.train->size());
  const StepRange range{
      .per_epoch = per_epoch, .first = start ? start->steps : 0, .end = settings.steps(per_epoch)};
  const EvaluationTask test{.model = inputs.model,
                            .dataset = data.test,
                            .input = {.normalization = inputs.changes.normalize},
                            .precision = settings.precision.network(),
                            .chunk_images = settings.test.batch,
                            .loss = {.own = inputs.hooks.loss},
                            .workers = settings.workers,
                            .warn = inputs.hooks.warn};
  training.reset();
  training = std::make_unique<Training>(
      inputs, TrainingPlan{.range = range, .test = test, .start = start}, reporter);
}

Trainer::Trainer(Communicator& ranks,
                 nn::Module& network,
                 data::DatasetPair images,
                 const TrainerOptions& options,
                 const TrainerHooks& hooks) {
  if (!images.train || !images.test) {
    throw UsageError("a trainer without images",
                     "it trains on some and evaluates on others",
                     "both members of DatasetPair");
  }
  compare_trainings(ranks, network, images, options);
  if (images.train->size() < 1 || images.test->size() < 1) {
    throw UsageError(
        "a data set has no images",
        fmt::format("{} to train on, {} to evaluate on", images.train->size(), images.test->size()),
        "one image or more in each");
  }
  check_samples(images, options, hooks);
  if (std::ranges::none_of(network.parameters(), &Var::requires_grad)) {
    throw UsageError("no parameter of the network can be trained",
                     "each is frozen, or the network has none",
                     "Var::set_requires_grad(true) for those to be trained");
  }
  impl_ = std::make_unique<Impl>(ranks, network, std::move(images), options, hooks);
}

Trainer::~Trainer() = default;

int64_t Trainer::steps() const {
  return impl_->training->steps();
}

int64_t Trainer::steps_per_epoch() const {
  return impl_->training->range().per_epoch;
}

int64_t Trainer::end() const {
  return impl_->training->range().end;
}

StepReport Trainer::step() {
  Training& training = *impl_->training;
  if (steps() >= end()) {
    throw UsageError("no step is left",
                     fmt::format("{} were to be taken", end()),
                     "more epochs, or a step while steps() < end()");
  }
  with_errors_of_a_trainer(*impl_->data.train, [&] { training.train_step(); });
  const StepMetrics& figures = impl_->reporter.figures();
  return {.step = steps(),
          .epoch = training.epoch().number(),
          .loss = figures.loss,
          .accuracy = figures.acc1,
          .lr = figures.lr,
          .ends_epoch = steps() % steps_per_epoch() == 0,
          .skipped = training.scaled().newly_skipped > 0};
}

void Trainer::run(const std::function<bool(const StepReport& report)>& on_step) {
  while (steps() < end()) {
    const StepReport report = step();
    if (on_step && !on_step(report)) return;
  }
}

Evaluation Trainer::Impl::evaluate(EvaluationObserver* other) {
  training->share_buffers();
  return with_errors_of_a_trainer(*data.test, [&] { return training->evaluate(other).value(); });
}

Safetensors Trainer::logits() {
  LogitObserver collected;
  impl_->evaluate(&collected);
  return collected.content();
}

EvaluationReport Trainer::evaluate() {
  Impl& own = *impl_;
  const Evaluation found = own.evaluate(nullptr);
  const int64_t epochs = steps() / steps_per_epoch();
  if (steps() % steps_per_epoch() == 0 && epochs > own.evaluated_epochs && !own.averages) {
    own.evaluated_epochs = epochs;
    own.training->update().end_epoch(epochs - 1, found.loss, found.acc1());
  }
  return {.correct = found.correct1,
          .correct5 = found.correct5,
          .images = found.total,
          .loss = found.loss};
}

void Trainer::with_average(const std::function<void()>& use) {
  WeightUpdate& update = impl_->training->update();
  if (update.average() == nullptr) {
    throw UsageError("the weights have no moving average",
                     "optimizer.ema, its decay, is 0",
                     "optimizer.ema = 0.999 before the Trainer is made");
  }
  impl_->averages = true;
  update.with_average(use);
  impl_->averages = false;
}

}  // namespace lockstep
