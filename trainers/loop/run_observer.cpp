#include "trainers/loop/run_observer.h"

#include <chrono>
#include <cmath>

#include <fmt/core.h>

#include "core/digest.h"
#include "trainers/debug/planted_fault.h"
#include "trainers/loop/first_images.h"
#include "trainers/loop/weight_histograms.h"
#include "trainers/report/console.h"
#include "trainers/report/errors.h"
#include "trainers/report/process.h"
#include "trainers/report/run_events.h"
#include "trainers/report/tutorial_lines.h"
#include "trainers/timeline/write_trace.h"

namespace lockstep::trainers {

RunObserver::RunObserver(const TrainingParts& parts)
    : parts_(parts),
      log_(nullptr, parts_.console),
      numerics_(parts, log_),
      trace_(parts_.replay ? std::nullopt : parts_.run.request.trace,
             parts_.ranks,
             parts_.stream,
             parts_.model),
      saves_(parts_) {
  if (parts_.fault && parts_.fault->breaks_layer()) {
    layer_fault_.emplace(*parts_.fault, parts_.model, parts_.run_ranks());
  }
}

void RunObserver::open(const Outputs& outputs, Training& training) {
  outputs_ = outputs;
  training_ = &training;
  log_ = RunLog(outputs.directory, parts_.console, open_events(training.range()));
  if (outputs.record != nullptr) {
    log_.begin_events([&] {
      EventOpening opening = event_opening(*outputs.record);
      opening.images = first_images(parts_, training.range());
      return opening;
    });
  }
  run_or_end_all_ranks(parts_.ranks, [&] { saves_.open(outputs.saves, training); });
}

std::optional<RunEvents> RunObserver::open_events(const StepRange& range) const {
  const RunRequest& request = parts_.run.request;
  if (outputs_.directory == nullptr || !request.tensorboard) return std::nullopt;
  const EventTags tags = request.tricks_lines ? EventTags::kTricks
                         : request.apex_lines ? EventTags::kApex
                                              : EventTags::kOwn;
  const RunEvents::Position start{.steps = parts_.start ? parts_.start->steps : 0,
                                  .epochs = parts_.start ? parts_.start->epoch : 0,
                                  .evaluates = begins_with_evaluation(parts_.start, range)};
  return RunEvents(outputs_.directory->path(), tags, start);
}

void RunObserver::end(TrainingResult& result) {
  result.saved = saves_.finish().value_or(result.saved);
  result.first_step_s = first_step_s_;
  write_trace(trace_.end(), parts_.ranks, outputs_.directory, parts_.console);
  if (!result.stopped) log_.end_events(result.steps);
}

bool RunObserver::draws_histograms_after(int64_t step) const {
  const int64_t every = parts_.run.request.histograms;
  return every > 0 && !parts_.replay && step % every == 0;
}

void RunObserver::begin_step(int64_t step) {
  if (draws_histograms_after(step)) training_->read_scale();
  gradient_scale_ = training_->scaled().scale;
  trace_.begin_step(step);
  numerics_.begin_step(step, training_->scaled());
}

bool RunObserver::needs_host() {
  return (parts_.fault && parts_.fault->is_within_step()) || numerics_.listener() != nullptr;
}

TapeListener* RunObserver::listener(const Shards& shards) {
  TapeListener* const watch = trace_.listener(numerics_.listener());
  return layer_fault_ ? layer_fault_->listener(training_->steps() + 1, shards, watch) : watch;
}

void RunObserver::begin_epoch(const Training& training) {
  const int epoch = training.epoch().number();
  parts_.console.tutorial(
      TutorialLines::kDemo,
      fmt::format("begin training of epoch {}/{}", epoch + 1, parts_.settings.epoch_count()));
  if (parts_.run.request.photos.train_ramp.from == 0) return;
  const auto side = [&](int e) { return parts_.data.train->training_shape(e).height; };
  const bool is_first = training.steps() == training.range().first;
  if (epoch > 0 && !is_first && side(epoch) == side(epoch - 1)) return;
  parts_.console.info(fmt::format("epoch {0}: training images of {1}x{1}", epoch, side(epoch)));
}

void RunObserver::after_step(Training& training) {
  const int64_t step = training.steps();
  if (first_step_s_ == 0) first_step_s_ = seconds_since_process_start();
  inject(parts_.fault, parts_.ranks.rank(), step, parts_.model);
  if (draws_histograms_after(step) && outputs_.directory != nullptr) {
    log_histograms(parts_.model, gradient_scale_, step, log_);
  }
}

bool RunObserver::wants_figures(const Training& training) {
  const int64_t step = training.steps();
  return parts_.replay || saves_.checkpoint_due(step) || saves_.kept_state_due(step);
}

void RunObserver::on_scale(Training& training, const ScaledStep& scaled) {
  if (numerics_.end_step(scaled, training.steps()) && parts_.replay) training.stop();
}

void RunObserver::on_infinite_loss(Training& training,
                                   float loss,
                                   int64_t step,
                                   const DivergedError& error) {
  numerics_.report_loss(loss, step);
  if (parts_.replay) return training.stop();  // it has found what it looked for
  throw DivergedError(
      error.what(),
      error.why(),
      fmt::format("a smaller --lr; `lockstep replay {}` names the tensor that it began in",
                  parts_.run.output_dir));
}

void RunObserver::on_figures(Training& training, const StepMetrics& metrics) {
  const RunRequest& request = parts_.run.request;
  const EpochProgress& epoch = training.epoch();
  const int64_t done = epoch.done();
  parts_.console.progress_bar(progress_bar(
      epoch.number(), static_cast<int>(request.epoch_count()), done, epoch.steps(), metrics));
  // main.py prints batch 0, then every print_freq-th.
  if (done != 1 && done % request.print_freq != 0 && done != epoch.steps()) return;
  const auto line = request.apex_lines ? apex_progress_line : progress_line;
  parts_.console.progress_line(line(epoch.number(), done, epoch.steps(), metrics));
  log_.append_step(epoch.number(), training.steps(), metrics);
  training.begin_line();
}

void RunObserver::end_step(Training& training) {
  const int64_t step = training.steps();
  const EpochProgress& epoch = training.epoch();
  const bool saves = saves_.checkpoint_due(step) && epoch.done() < epoch.steps();
  const bool keeps = saves_.kept_state_due(step);
  if (training.result().stopped || !(saves || keeps)) {
    saves_.advance();
  } else {
    training.synchronize_replicas();
    if (saves) {
      saves_.save_checkpoint();
      training.begin_line();
    } else {
      saves_.advance();
    }
    if (keeps) saves_.keep();
  }
  write_trace(trace_.end_step(step), parts_.ranks, outputs_.directory, parts_.console);
}

EvaluationObserver* RunObserver::begin_evaluation() {
  parts_.console.tutorial(TutorialLines::kDemo, "begin testing");
  collector_.emplace(EvaluationOutputs{.mistakes = &mistakes_}, *parts_.data.test);
  return &*collector_;
}

void RunObserver::end_evaluation(const Evaluation& evaluation) {
  parts_.console.info(accuracy_line(evaluation, parts_.run.request.apex_lines));
}

void RunObserver::end_epoch(Training& training, const EpochEvaluation* evaluation) {
  const int number = training.epoch().number();
  const TrainingResult& result = training.result();
  // One that goes on from here begins with the evaluation.
  if (result.stopped) return saves_.save_checkpoint();
  if (evaluation != nullptr) log_evaluation(training, *evaluation);
  if (outputs_.csv != nullptr) {
    log_epoch(training, evaluation ? std::optional(evaluation->weights) : std::nullopt);
  }
  const bool last = result.steps == training.range().end;
  const bool is_due = last || result.early_stop_epoch ||
                      (number + 1) % parts_.run.request.save_freq == 0 ||
                      saves_.checkpoint_due(result.steps);
  // The moving average is of the same step as the checkpoint.
  const bool averages = training.update().average() != nullptr;
  saves_.save({.average = averages && (is_due || evaluation != nullptr),
               .best = evaluation != nullptr && evaluation->is_best,
               .checkpoint = is_due});
  if (saves_.kept_state_due(result.steps)) saves_.keep();
}

void RunObserver::log_evaluation(const Training& training, const EpochEvaluation& found) {
  const EpochProgress& epoch = training.epoch();
  const int number = epoch.number();
  const int64_t step = training.steps();
  const std::string digest =
      outputs_.directory == nullptr ? "" : to_hex(state_digest(parts_.model));
  if (found.average) parts_.console.info(average_line(*found.average));
  log_.append_evaluation("val", number, step, found.weights, digest);
  log_.append_epoch_events(number, step, epoch.averages(training.update().lr()), found.weights);
  if (found.average) log_.append_evaluation("val-ema", number, step, *found.average, "");
  if (epoch.done() == training.range().per_epoch) tell_schedules(training, found);
  if (std::isfinite(found.weights.loss)) return;
  parts_.console.warn(
      fmt::format("lockstep: warning: the test loss is {} after epoch {}, which is never the best",
                  found.weights.loss,
                  number + 1));
}

void RunObserver::tell_schedules(const Training& training, const EpochEvaluation& found) {
  const EpochProgress& epoch = training.epoch();
  const auto tell = [&](const std::string& line) {
    parts_.console.tutorial(TutorialLines::kTricks, line);
  };
  tell(tricks_epoch_line({.number = epoch.number(),
                          .epochs = parts_.settings.epoch_count(),
                          .seconds = epoch.seconds(),
                          .lr = training.update().lr(),
                          .train_loss = epoch.loss(),
                          .train_acc1 = epoch.acc1(),
                          .test = found.weights}));
  if (found.cut_rate) tell(tricks_cut_line(epoch.number(), *found.cut_rate));
  if (training.result().early_stop_epoch) tell("EarlyStopping");
}

void RunObserver::log_epoch(const Training& training, const std::optional<Evaluation>& evaluation) {
  using std::chrono::duration_cast;
  using std::chrono::system_clock;
  const EpochProgress& epoch = training.epoch();
  const std::chrono::duration<double> seconds(epoch.seconds());
  log_.append_epoch(*outputs_.csv,
                    {.start = system_clock::now() - duration_cast<system_clock::duration>(seconds),
                     .seconds = seconds.count(),
                     .epoch = epoch.number(),
                     .step = training.steps(),
                     .lr = training.update().lr(),
                     .train_loss = epoch.loss(),
                     .train_acc1 = epoch.acc1(),
                     .train_acc5 = epoch.acc5(),
                     .evaluation = evaluation});
}

}  // namespace lockstep::trainers
