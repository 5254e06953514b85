#include "engine/trainer.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "comm/gather.h"
#include "comm/replicas.h"
#include "core/error.h"
#include "engine/compare_trainings.h"
#include "engine/settings/batch_division.h"
#include "engine/state/weights_file.h"
#include "engine/step/training_step.h"
#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/checkpoint/output_classes.h"
#include "trainers/config/resolved_run.h"
#include "trainers/loop/evaluate_training.h"
#include "trainers/loop/run_observer.h"
#include "trainers/loop/training_data.h"
#include "trainers/loop/training_guards.h"
#include "trainers/options/flag_table.h"
#include "trainers/report/errors.h"

namespace lockstep {
namespace {

OptimizerConfig optimizer_config(const TrainerOptions& options) {
  const OptimizerOptions& wanted = options.optimizer;
  const ScheduleOptions& schedule = options.schedule;
  OptimizerConfig config{.lr = wanted.lr,
                         .momentum = wanted.momentum,
                         .nesterov = wanted.nesterov,
                         .weight_decay = wanted.weight_decay,
                         .clip_grad_norm = wanted.clip_grad_norm};
  switch (wanted.kind) {
    case OptimizerKind::kSgd:
      config.kind = OptimizerKind::kSgd;
      break;
    case OptimizerKind::kAdam:
      config.kind = OptimizerKind::kAdam;
      break;
    case OptimizerKind::kAdamW:
      config.kind = OptimizerKind::kAdamW;
      break;
  }
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      config.schedule.kind = ScheduleKind::kConst;
      break;
    case ScheduleKind::kStep:
      config.schedule.kind = ScheduleKind::kStep;
      break;
    case ScheduleKind::kCosine:
      config.schedule.kind = ScheduleKind::kCosine;
      break;
  }
  config.schedule.step_size = schedule.step_epochs;
  config.schedule.gamma = schedule.gamma;
  config.schedule.warmup.epochs = schedule.warmup_epochs;
  return config;
}

PrecisionConfig precision_config(const TrainerOptions& options) {
  if (options.precision.level < 0 || options.precision.level > 3) {
    throw UsageError(fmt::format("precision.level {} does not exist", options.precision.level),
                     "levels are Apex's O0 to O3",
                     "a number from 0 to 3");
  }
  if (options.precision.half != Dtype::kF16 && options.precision.half != Dtype::kBF16) {
    throw UsageError(
        "precision.half is not a 16-bit type", "activations are kept in it", "kF16 or kBF16");
  }
  PrecisionConfig config = at_level(static_cast<OptLevel>(options.precision.level));
  config.dtype = options.precision.half;
  config.loss_scaling = usual_loss_scaling(config.level, config.dtype);
  return config;
}

// Errors: UsageError, unless `value` is in the range that `required` tells.
void require(bool in_range, const char* name, double value, const char* required) {
  if (in_range) return;
  throw UsageError(fmt::format("{} is {:g}", name, value), "it is out of range", required);
}

// Errors: UsageError, unless the programs' flag takes `value`.
template <class Number>
void require_as(const char* flag_name, const char* name, Number value) {
  const trainers::Flag& flag = *trainers::find_flag(fmt::format("--{}", flag_name));
  const auto number = static_cast<double>(value);
  const std::string range = trainers::allowed_numbers(flag, number);
  require(trainers::is_allowed(flag, number), name, number, range.c_str());
}

// Errors: UsageError.
void check_ranges(const TrainerOptions& options) {
  const OptimizerOptions& optimizer = options.optimizer;
  const ScheduleOptions& schedule = options.schedule;
  require_as("global-batch-size", "batch", options.batch);
  require_as("val-batch-size", "test_batch", options.test_batch);
  require_as("epochs", "epochs", options.epochs);
  require_as("threads", "rank.threads", options.rank.threads);
  require_as("workers", "rank.workers", options.rank.workers);
  require_as("lr", "optimizer.lr", optimizer.lr);
  require_as("momentum", "optimizer.momentum", optimizer.momentum);
  require(!optimizer.nesterov || optimizer.kind != OptimizerKind::kSgd || optimizer.momentum > 0,
          "optimizer.momentum",
          optimizer.momentum,
          "a number above 0 with nesterov");
  require_as("weight-decay", "optimizer.weight_decay", optimizer.weight_decay);
  require_as("clip-grad-norm", "optimizer.clip_grad_norm", optimizer.clip_grad_norm);
  require_as("lr-gamma", "schedule.gamma", schedule.gamma);
  require_as("warmup-epochs", "schedule.warmup_epochs", schedule.warmup_epochs);
  require_as("lr-step-size", "schedule.step_epochs", schedule.step_epochs);
  require_as("shards", "shards", options.shards.value_or(1));
  require_as("bn-groups", "batch_norm_groups", options.batch_norm_groups.value_or(1));
  require(options.label_smoothing >= 0 && options.label_smoothing < 1,
          "label_smoothing",
          options.label_smoothing,
          "a number from 0 to below 1");
}

// Settings that do not depend on the images. Errors: UsageError.
trainers::RunRequest request_of(const TrainerOptions& options) {
  check_ranges(options);
  trainers::RunRequest request;
  request.workers = options.rank.workers;
  request.val_batch_size = options.test_batch;
  request.epochs = static_cast<double>(options.epochs);
  request.optimizer = optimizer_config(options);
  request.loss.label_smoothing = options.label_smoothing;
  request.seeds = {options.seed, options.seed, options.seed};
  request.batch.global = options.batch;
  request.batch.shards = options.shards;
  request.batch.bn_groups = options.batch_norm_groups;
  request.batch.names = {};
  request.precision = precision_config(options);
  request.device = options.rank.device;
  request.print_freq = 1;
  return request;
}

trainers::ResolvedRun resolve(const TrainerOptions& options,
                              Communicator& ranks,
                              const data::DatasetPair& images) {
  trainers::ResolvedRun run{.request = request_of(options)};
  const std::vector<int64_t> threads = comm::gather_value(ranks, int64_t{options.rank.threads});
  run.threads = *std::ranges::min_element(threads);
  const trainers::RunRequest& request = run.request;
  run.batch = divide_batch(request.batch, request.device, ranks.size(), run.threads);
  check_steps(request.batch, run.batch, images.train->size());
  return run;
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
      const Error known = trainers::as_error(error);
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

// Reads weights on rank 0; returns the file's metadata. Errors: CheckpointError.
trainers::Texts read_into(nn::Module& network,
                          const std::filesystem::path& file,
                          Classifier classifier) {
  try {
    WeightsFile weights(file);
    weights.load_into(network, classifier);
    return weights.metadata();
  } catch (const CheckpointError& error) {
    const bool names_flags = error.hint().find("--") != std::string::npos;  // the programs'
    if (!names_flags) throw;
    throw CheckpointError(error.what(),
                          error.why(),
                          "the network that the file was made with, names as torchvision's");
  }
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

}  // namespace

// Members are constructed in this order: later ones refer to earlier ones.
struct Trainer::Impl {
  Impl(Communicator& communicator,
       nn::Module& network,
       data::DatasetPair images,
       const TrainerOptions& options)
      : ranks(communicator),
        data(std::move(images)),
        run(resolve(options, ranks, data)),
        stream(options.rank.device,
               options.rank.device == Device::kCpu ? static_cast<int>(run.threads) : 1),
        console({.prints = ranks.rank() == 0 && options.warn != nullptr,
                 .quiet = true,
                 .progress = trainers::ProgressMode::kNone,
                 .sink = options.warn}),
        parts{inputs(network), run, console},
        range(trainers::step_range(parts)),
        log(nullptr, console),
        observer(parts, log),
        step(parts, range, observer),
        evaluation(parts, step) {
    share_weights();
    observer.numerics().start(step.update().scaled());
  }

  StepInputs inputs(nn::Module& network) {
    StepInputs inputs = trainers::step_inputs(run, data, ranks, stream, network);
    inputs.host.warn = trainers::warn_of_images(console);
    return inputs;
  }
  void share_weights() {
    std::vector<Tensor> tensors = nn::tensors_of(parts.model.state());
    comm::broadcast_tensors(ranks, tensors, step.device_peers());
    step.update().weights_were_written();
  }
  // Batch norm's statistics are rank 0's.
  void share_buffers() {
    std::vector<Tensor> buffers;
    for (const nn::StateEntry& entry : parts.model.state()) {
      if (!entry.is_parameter) buffers.push_back(entry.tensor);
    }
    comm::broadcast_tensors(ranks, buffers, step.device_peers());
  }

  Communicator& ranks;
  const data::DatasetPair data;
  const trainers::ResolvedRun run;
  Stream stream;
  trainers::Console console;
  const trainers::TrainingParts parts;
  const StepRange range;
  trainers::RunLog log;
  trainers::RunObserver observer;
  TrainingStep step;
  trainers::TrainingEvaluation evaluation;
  int64_t steps = 0;
};

Trainer::Trainer(Communicator& ranks,
                 nn::Module& network,
                 data::DatasetPair images,
                 const TrainerOptions& options) {
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
  impl_ = std::make_unique<Impl>(ranks, network, std::move(images), options);
}

Trainer::~Trainer() = default;

int64_t Trainer::steps() const {
  return impl_->steps;
}

int64_t Trainer::steps_per_epoch() const {
  return impl_->range.per_epoch;
}

int64_t Trainer::end() const {
  return impl_->range.end;
}

StepReport Trainer::step() {
  Impl& own = *impl_;
  if (own.steps >= own.range.end) {
    throw UsageError("no step is left",
                     fmt::format("{} were to be taken", own.range.end),
                     "more epochs, or a step while steps() < end()");
  }
  const int64_t number = own.steps++;
  const int64_t epoch = number / own.range.per_epoch;
  with_errors_of_a_trainer(*own.data.train, [&] { return own.step.take(number); });
  WindowTotals totals;
  double lr = 0;
  try {
    own.observer.numerics().read_scale(own.step.update(), own.steps);
    totals = own.step.exchange_figures(false);
    lr = own.step.update().lr();
    own.observer.numerics().check_losses(totals, own.steps, static_cast<int>(epoch), lr);
  } catch (const DivergedError& error) {  // without the programs' flags
    throw DivergedError(
        error.what(), error.why(), "a smaller optimizer.lr, or optimizer.clip_grad_norm 1");
  }
  const ScaledStep& scaled = own.observer.numerics().scaled();
  const bool skipped = scaled.newly_skipped > 0;
  if (const auto& scaling = own.run.request.precision.loss_scaling; skipped && scaling) {
    own.console.warn(trainers::overflow_line(scaling->dynamic, scaled.scale));
  }
  return {
      .step = own.steps,
      .epoch = epoch,
      .loss = totals.losses.front(),
      .accuracy = 100 * static_cast<double>(totals.correct1) / static_cast<double>(totals.images),
      .lr = lr,
      .ends_epoch = own.steps % own.range.per_epoch == 0,
      .skipped = skipped};
}

void Trainer::run(const std::function<bool(const StepReport& report)>& on_step) {
  while (steps() < end()) {
    const StepReport report = step();
    if (on_step && !on_step(report)) return;
  }
}

EvaluationReport Trainer::evaluate() {
  impl_->share_buffers();
  const Evaluation found = with_errors_of_a_trainer(
      *impl_->data.test, [&] { return impl_->evaluation.measure().value(); });
  return {.correct = found.correct1,
          .correct5 = found.correct5,
          .images = found.total,
          .loss = found.loss};
}

void Trainer::save(const std::filesystem::path& file) {
  impl_->share_buffers();
  on_rank_0(impl_->ranks, [&] {
    write_safetensors(
        file,
        {.tensors = file_tensors(impl_->parts.model.state()),
         .metadata = {{"format", "pt"}, {trainers::kVersionKey, trainers::format_version()}}});
  });
}

void Trainer::load(const std::filesystem::path& file) {
  on_rank_0(impl_->ranks, [&] {
    const trainers::Texts metadata = read_into(impl_->parts.model, file, Classifier::kMustFit);
    const auto other = trainers::other_class(*impl_->data.test, metadata, file.string());
    if (other) impl_->console.warn("lockstep: warning: " + *other);
  });
  impl_->share_weights();
}

void Trainer::load_all_but_classifier(const std::filesystem::path& file) {
  on_rank_0(impl_->ranks, [&] { read_into(impl_->parts.model, file, Classifier::kMayStartFresh); });
  impl_->share_weights();
}

}  // namespace lockstep
