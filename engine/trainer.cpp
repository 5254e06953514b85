#include "engine/trainer.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "comm/gather.h"
#include "comm/replicas.h"
#include "core/error.h"
#include "core/json_list.h"
#include "core/words.h"
#include "engine/check_options.h"
#include "engine/compare_trainings.h"
#include "engine/evaluation/evaluate.h"
#include "engine/settings/batch_division.h"
#include "engine/settings/usual_images.h"
#include "engine/state/class_names.h"
#include "engine/state/training_state.h"
#include "engine/state/weights_file.h"
#include "engine/step/training_step.h"

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

ImageChanges changes_of(const TrainerOptions& options, const data::Dataset& train) {
  ImageChanges changes;
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

StepRange range_of(const TrainingSettings& settings, int64_t per_epoch) {
  return {.per_epoch = per_epoch, .end = settings.steps(per_epoch)};
}

// "bees", as files record the names of class folders.
std::vector<std::string> printable_names(const data::Dataset& images) {
  std::vector<std::string> names = images.class_names();
  for (std::string& name : names) name = printable(name, std::string::npos);
  return names;
}

Error known_error(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return *known;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return EnvironmentError("out of memory", "a file needs more", "a machine with more memory");
  }
  return EnvironmentError(error.what(), "the system refused", "another file or folder");
}

// Calls body() on rank 0. Errors: on all ranks CheckpointError where it throws that, else
// EnvironmentError.
void on_rank_0(Communicator& ranks, FunctionRef<void()> body) {
  std::string parts[3];
  auto code = ExitCode::kDone;
  if (ranks.rank() == 0) {
    try {
      body();
    } catch (const std::exception& error) {
      const Error known = known_error(error);
      code = known.code();
      parts[0] = known.what();
      parts[1] = known.why();
      parts[2] = known.hint();
    }
  }
  ranks.broadcast(std::as_writable_bytes(std::span(&code, 1)), 0);
  if (code == ExitCode::kDone) return;
  for (std::string& part : parts) part = comm::broadcast_text(ranks, part);
  if (code == ExitCode::kCheckpoint) throw CheckpointError(parts[0], parts[1], parts[2]);
  throw EnvironmentError(parts[0], parts[1], parts[2]);
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

class ListenedSteps final : public StepObserver {
 public:
  explicit ListenedSteps(TapeListener* listener) : listener_(listener) {}

  bool needs_host() override { return listener_ != nullptr; }
  TapeListener* listener(const Shards& /*shards*/) override { return listener_; }

 private:
  TapeListener* const listener_;
};

}  // namespace

// Members are constructed in this order: later ones refer to earlier ones.
struct Trainer::Impl {
  Impl(Communicator& ranks,
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
        inputs{.settings = settings,
               .batch = batch,
               .data = data,
               .ranks = ranks,
               .stream = stream,
               .model = network,
               .changes = changes_of(options, *data.train),
               .hooks = {.warn =
                             [this](const std::string& text) { say("lockstep: warning: " + text); },
                         .exchange = hooks.exchange,
                         .update = {.rate = hooks.rate, .make_optimizer = hooks.make_optimizer}}},
        range(range_of(settings, lockstep::steps_per_epoch(batch, data.train->size()))),
        observer(hooks.listener),
        skipped_tests(data.test->size(), inputs.hooks.warn) {
    step.emplace(inputs, range, observer);
    share_weights();
  }

  void say(const std::string& text) const {
    if (warn) warn(text);
  }
  void share_weights() {
    std::vector<Tensor> tensors = nn::tensors_of(inputs.model.state());
    comm::broadcast_tensors(inputs.ranks, tensors, step->device_peers());
    step->update().weights_were_written();
  }
  // Batch norm's statistics are rank 0's.
  void share_buffers() {
    std::vector<Tensor> buffers;
    for (const nn::StateEntry& entry : inputs.model.state()) {
      if (!entry.is_parameter) buffers.push_back(entry.tensor);
    }
    comm::broadcast_tensors(inputs.ranks, buffers, step->device_peers());
  }
  void check_loss(float loss, double lr) const;
  // Reads weights on rank 0, for all ranks. Errors: those of Trainer::load.
  std::map<std::string, std::string> read(const std::filesystem::path& file, Classifier classifier);
  TrainingState state() const;
  // Goes on from the state that rank 0 has.
  void go_on(const TrainingState& state);

  const data::DatasetPair data;
  const TrainingSettings settings;
  const int64_t threads;
  const BatchDivision batch;
  Stream stream;
  const std::function<void(const std::string& text)> warn;
  const StepInputs inputs;
  StepRange range;
  ListenedSteps observer;
  std::optional<TrainingStep> step;  // made again where a training goes on
  SkippedPhotos skipped_tests;
  struct {
    int64_t steps = 0;
    int64_t evaluated_epochs = 0;  // that the schedule knows
    bool averages = false;         // in with_average()
  } done;
};

void Trainer::Impl::check_loss(float loss, double lr) const {
  if (std::isfinite(loss)) return;
  throw DivergedError(
      fmt::format("the loss is {} at step {}", std::isnan(loss) ? "nan" : "infinite", done.steps),
      fmt::format("training diverged at learning rate {:g}, or an input is not finite", lr),
      "a smaller optimizer.lr, or optimizer.clip_grad_norm 1");
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
  if (std::ranges::none_of(network.parameters(), &Var::requires_grad)) {
    throw UsageError("no parameter of the network can be trained",
                     "each is frozen, or the network has none",
                     "Var::set_requires_grad(true) for those to be trained");
  }
  impl_ = std::make_unique<Impl>(ranks, network, std::move(images), options, hooks);
}

Trainer::~Trainer() = default;

int64_t Trainer::steps() const {
  return impl_->done.steps;
}

int64_t Trainer::steps_per_epoch() const {
  return impl_->range.per_epoch;
}

int64_t Trainer::end() const {
  return impl_->range.end;
}

StepReport Trainer::step() {
  Impl& own = *impl_;
  const StepRange& range = own.range;
  if (own.done.steps >= range.end) {
    throw UsageError("no step is left",
                     fmt::format("{} were to be taken", range.end),
                     "more epochs, or a step while steps() < end()");
  }
  const int64_t number = own.done.steps++;
  with_errors_of_a_trainer(*own.data.train, [&] { return own.step->take(number); });
  WeightUpdate& update = own.step->update();
  const ScaledStep scaled = update.read_scale(own.done.steps);
  const WindowTotals totals = own.step->exchange_figures(false);
  own.check_loss(totals.losses.front(), update.lr());
  if (const auto& scaling = own.settings.precision.loss_scaling;
      scaling && scaled.newly_skipped > 0) {
    own.say(overflow_line(scaling->dynamic, scaled.scale));
  }
  return {
      .step = own.done.steps,
      .epoch = number / range.per_epoch,
      .loss = totals.losses.front(),
      .accuracy = 100 * static_cast<double>(totals.correct1) / static_cast<double>(totals.images),
      .lr = update.lr(),
      .ends_epoch = own.done.steps % range.per_epoch == 0,
      .skipped = scaled.newly_skipped > 0};
}

void Trainer::run(const std::function<bool(const StepReport& report)>& on_step) {
  while (steps() < end()) {
    const StepReport report = step();
    if (on_step && !on_step(report)) return;
  }
}

EvaluationReport Trainer::evaluate() {
  Impl& own = *impl_;
  own.share_buffers();
  EvaluationTask task{.model = own.inputs.model,
                      .dataset = own.data.test,
                      .input = {.normalization = own.inputs.changes.normalize},
                      .precision = own.settings.precision.network(),
                      .chunk_images = own.settings.test.batch,
                      .workers = own.settings.workers,
                      .warn = own.inputs.hooks.warn,
                      .skipped = &own.skipped_tests};
  const auto memory = own.step->use_memory();
  const Evaluation found = with_errors_of_a_trainer(*own.data.test, [&] {
    return lockstep::evaluate(task, own.stream, own.inputs.ranks).value();
  });
  const int64_t epochs = own.done.steps / steps_per_epoch();
  if (own.done.steps % steps_per_epoch() == 0 && epochs > own.done.evaluated_epochs &&
      !own.done.averages) {
    own.done.evaluated_epochs = epochs;
    own.step->update().end_epoch(epochs - 1, found.loss, found.acc1());
  }
  return {.correct = found.correct1,
          .correct5 = found.correct5,
          .images = found.total,
          .loss = found.loss};
}

void Trainer::with_average(const std::function<void()>& use) {
  WeightUpdate& update = impl_->step->update();
  if (update.average() == nullptr) {
    throw UsageError("the weights have no moving average",
                     "optimizer.ema, its decay, is 0",
                     "optimizer.ema = 0.999 before the Trainer is made");
  }
  impl_->done.averages = true;
  update.with_average(use);
  impl_->done.averages = false;
}

void Trainer::save(const std::filesystem::path& file) {
  impl_->share_buffers();
  on_rank_0(impl_->inputs.ranks, [&] {
    write_safetensors(file,
                      {.tensors = file_tensors(impl_->inputs.model.state()),
                       .metadata = {{"format", "pt"}, {kVersionKey, format_version()}}});
  });
}

std::map<std::string, std::string> Trainer::Impl::read(const std::filesystem::path& file,
                                                       Classifier classifier) {
  std::map<std::string, std::string> metadata;
  on_rank_0(inputs.ranks, [&] {
    WeightsFile weights(file);
    weights.load_into(inputs.model, classifier);
    metadata = weights.metadata();
  });
  share_weights();
  return metadata;
}

void Trainer::load(const std::filesystem::path& file) {
  const auto metadata = impl_->read(file, Classifier::kMustFit);
  const auto evaluation = metadata.find(kEvaluationKey);
  if (evaluation == metadata.end()) return;
  const auto other = other_class(printable_names(*impl_->data.test),
                                 strings_under(evaluation->second, "class_names"),
                                 file.string());
  if (other) impl_->say("lockstep: warning: " + *other);
}

void Trainer::load_all_but_classifier(const std::filesystem::path& file) {
  impl_->read(file, Classifier::kMayStartFresh);
}

TrainingState Trainer::Impl::state() const {
  const WeightUpdate& update = step->update();
  TrainingState state{.model = file_tensors(inputs.model.state()),
                      .optimizer = file_tensors(update.optimizer().state()),
                      .position = {},
                      .settings = {{"batch", std::to_string(batch.images)},
                                   {"shards", std::to_string(batch.shards)},
                                   {"batch_norm_groups", std::to_string(batch.bn_groups)},
                                   {"seed", std::to_string(settings.seeds.run)},
                                   {"training images", data.train->digest()}}};
  state.position.steps = done.steps;
  state.position.epoch = done.evaluated_epochs;
  update.describe(state.position);
  return state;
}

void Trainer::save_state(const std::filesystem::path& file) {
  impl_->share_buffers();
  on_rank_0(impl_->inputs.ranks, [&] { write_safetensors(file, to_file(impl_->state())); });
}

namespace {

// Errors: CheckpointError where the file's training had other settings, or another network or
// optimizer.
void check_fits(const TrainingState& read, const TrainingState& ours, const std::string& file) {
  const std::string problem = fmt::format("{} is another training's state", file);
  for (const auto& [name, value] : ours.settings) {
    const auto found = read.settings.find(name);
    const std::string other = found == read.settings.end() ? "not known" : found->second;
    if (other == value) continue;
    throw CheckpointError(problem,
                          fmt::format("{} is {}, was {}", name, value, printable(other)),
                          "the options and images of that training");
  }
  const auto check = [&](const FileTensors& theirs, const FileTensors& own) {
    const auto alike = [](const auto& a, const auto& b) {
      return a.first == b.first && a.second.shape() == b.second.shape() &&
             a.second.dtype() == b.second.dtype();
    };
    if (std::ranges::equal(theirs, own, alike)) return;
    throw CheckpointError(problem,
                          fmt::format("it has {} tensors of other names, shapes or types than the "
                                      "{} of this training",
                                      theirs.size(),
                                      own.size()),
                          "the network, optimizer and precision of that training");
  };
  check(read.model, ours.model);
  check(read.optimizer, ours.optimizer);
}

}  // namespace

void Trainer::load_state(const std::filesystem::path& file) {
  TrainingState state;
  const TrainingState ours = impl_->state();
  on_rank_0(impl_->inputs.ranks, [&] {
    state = training_state_of(read_safetensors(file), file.string());
    check_fits(state, ours, file.string());
    if (state.position.steps > end()) {
      throw CheckpointError(
          fmt::format("{} is past the end of this training", file.string()),
          fmt::format("it has taken {} steps, and this one has {}", state.position.steps, end()),
          "more epochs");
    }
  });
  impl_->go_on(state);
}

void Trainer::Impl::go_on(const TrainingState& state) {
  std::string texts;
  for (const auto& [key, value] : to_texts(state.position)) texts += key + '\n' + value + '\n';
  texts = comm::broadcast_text(inputs.ranks, texts);
  std::map<std::string, std::string> known;
  const std::vector<std::string_view> lines = split_words(texts, '\n');
  for (size_t i = 0; i + 1 < lines.size(); i += 2) known.emplace(lines[i], lines[i + 1]);
  const TrainingPosition position = position_of(known, "rank 0's state");
  done = {.steps = position.steps, .evaluated_epochs = position.epoch};
  range.first = position.steps;
  step.reset();
  step.emplace(inputs, range, observer);
  step->update().restore(position);
  std::vector<nn::StateEntry> entries = step->update().optimizer().state();
  if (inputs.ranks.rank() == 0) {
    copy_into(inputs.model.state(), state.model);
    copy_into(entries, state.optimizer);
  }
  std::vector<Tensor> tensors = nn::tensors_of(entries);
  comm::broadcast_tensors(inputs.ranks, tensors, step->device_peers());
  share_weights();
}

}  // namespace lockstep
