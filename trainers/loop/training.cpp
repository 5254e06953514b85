#include "trainers/loop/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "comm/gather.h"
#include "comm/replicas.h"
#include "core/digest.h"
#include "core/error.h"
#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/loop/first_images.h"
#include "trainers/loop/weight_histograms.h"
#include "trainers/report/console.h"
#include "trainers/report/errors.h"
#include "trainers/report/process.h"
#include "trainers/report/run_events.h"
#include "trainers/report/tutorial_lines.h"

namespace lockstep::trainers {
namespace {

// Returns how many steps like those of the window take this long; the same on all ranks.
int64_t steps_within(double seconds, const WindowTotals& window) {
  const double step_s = window.seconds / static_cast<double>(window.losses.size());
  return std::max(static_cast<int64_t>(seconds / std::max(step_s, 1e-3)), int64_t{1});
}

}  // namespace

Training::Training(const TrainingParts& parts)
    : parts_(parts),
      range_(step_range(parts_)),
      log_(nullptr, parts_.console),
      observer_(parts_, log_),
      step_(parts_, range_, observer_),
      early_stopping_(parts_.run.request.early_stopping),
      replicas_(parts_.model, step_.update().optimizer()),
      saves_(parts_, step_),
      evaluation_(parts_, step_) {
  result_.steps = range_.first;
  if (parts_.start) {
    check_place(*parts_.start, range_.per_epoch);
    result_.best = {parts_.start->best, static_cast<int>(parts_.start->best_epoch)};
    step_.update().restore(*parts_.start);
    early_stopping_.restore(parts_.start->early_stopping);
    if (early_stopping_.stopped()) result_.early_stop_epoch = parts_.start->epoch - 1;
  }
  observer_.numerics().start(step_.update().scaled());
}

void Training::restore(const FileTensors& optimizer, const std::string& file) {
  load_state(step_.update().optimizer().state(),
             optimizer,
             fmt::format("the optimizer's state in {} does not fit", file),
             "--opt, --momentum, --lookahead and --ema as in the run that made it");
}

// Rank 0 holds the initial weights, or what it read from a checkpoint.
void Training::share_start() {
  std::vector<Tensor> tensors = nn::tensors_of(parts_.model.state());
  if (parts_.start) {
    const std::vector<Tensor> more = nn::tensors_of(step_.update().optimizer().state());
    tensors.insert(tensors.end(), more.begin(), more.end());
  }
  comm::broadcast_tensors(parts_.ranks, tensors, step_.device_peers());
  step_.update().weights_were_written();
}

TrainingResult Training::run(const Outputs& outputs) {
  outputs_ = outputs;
  log_ = RunLog(outputs.directory, parts_.console, open_events());
  begin_events();
  run_or_end_all_ranks(parts_.ranks, [&] { saves_.open(outputs_.saves); });
  share_start();
  try {
    train_epochs();
    if (!result_.final && !result_.stopped && !parts_.replay && !parts_.run.request.no_eval) {
      result_.final = evaluation_.measure();
      result_.stopped = !result_.final;
    }
  } catch (const DivergedError&) {  // on all ranks
    saves_.finish();
    throw;
  }
  result_.saved = saves_.finish().value_or(result_.saved);
  const int64_t taken = result_.steps - parts_.settings.start_epoch * range_.per_epoch;
  const int64_t skipped = observer_.numerics().scaled().skipped;
  result_.skipped = {.count = skipped, .all = taken > 0 && skipped >= taken};
  observer_.trace().end(outputs_.directory);
  result_.communication = step_.summarize();
  if (!result_.stopped) log_.end_events(result_.steps);
  return result_;
}

void Training::train_epochs() {
  const int64_t epochs = parts_.settings.epoch_count();
  EpochSums sums = parts_.start ? parts_.start->sums : EpochSums{};
  auto epoch = static_cast<int>(parts_.start ? parts_.start->epoch : parts_.settings.start_epoch);
  while (goes_on(sums)) {
    const int64_t epoch_steps = std::min(range_.per_epoch, range_.end - result_.steps + sums.steps);
    EpochProgress progress(epoch, epoch_steps, parts_.run.batch.images, std::exchange(sums, {}));
    parts_.console.tutorial(TutorialLines::kDemo,
                            fmt::format("begin training of epoch {}/{}", epoch + 1, epochs));
    announce_size(epoch);
    while (progress.done() < progress.steps() && !result_.stopped) train_step(progress);
    result_.images += progress.images();
    result_.training_s += progress.seconds();
    end_epoch(progress);
    ++epoch;
  }
}

// Prints this epoch's image size when sizes grow and it is new.
void Training::announce_size(int epoch) const {
  if (parts_.run.request.photos.train_ramp.from == 0) return;
  const auto side = [&](int e) { return parts_.data.train->training_shape(e).height; };
  if (epoch > 0 && result_.steps > range_.first && side(epoch) == side(epoch - 1)) return;
  parts_.console.info(fmt::format("epoch {0}: training images of {1}x{1}", epoch, side(epoch)));
}

// The current epoch may only need its evaluation.
bool Training::goes_on(const EpochSums& current) const {
  const bool has_work = result_.steps < range_.end || current.steps > 0;
  return has_work && !result_.stopped && !result_.early_stop_epoch;
}

std::optional<RunEvents> Training::open_events() const {
  const RunRequest& request = parts_.run.request;
  if (outputs_.directory == nullptr || !request.tensorboard) return std::nullopt;
  const EventTags tags = request.tricks_lines ? EventTags::kTricks
                         : request.apex_lines ? EventTags::kApex
                                              : EventTags::kOwn;
  const RunEvents::Position start{.steps = parts_.start ? parts_.start->steps : 0,
                                  .epochs = parts_.start ? parts_.start->epoch : 0,
                                  .evaluates = begins_with_evaluation(parts_.start, range_)};
  return RunEvents(outputs_.directory->path(), tags, start);
}

void Training::begin_events() {
  if (outputs_.record == nullptr) return;
  log_.begin_events([&] {
    EventOpening opening = event_opening(*outputs_.record);
    opening.images = first_images(parts_, range_);
    return opening;
  });
}

void Training::train_step(EpochProgress& epoch) {
  const bool draws_histograms = draws_histograms_after(result_.steps + 1);
  if (draws_histograms) read_scale();  // the one by which this step's gradients are scaled
  const auto loss_scale = static_cast<float>(observer_.numerics().scaled().scale);
  observer_.trace().begin_step(result_.steps + 1);
  const TrainingStep::Seconds seconds = step_.take(result_.steps);
  epoch.end_step(seconds.all, seconds.data);
  ++result_.steps;
  // On a device, reading the scale would wait for the step.
  if (parts_.stream.device() == Device::kCpu || observer_.numerics().listener() != nullptr)
    read_scale();
  if (result_.first_step_s == 0) {
    result_.first_step_s = seconds_since_process_start();
  } else {
    result_.step_times.add(seconds.all);
  }
  inject(parts_.fault, parts_.ranks.rank(), result_.steps, parts_.model);
  if (draws_histograms && outputs_.directory != nullptr) {
    log_histograms(parts_.model, loss_scale, result_.steps, log_);
  }

  compare_ranks_if_due();
  const int64_t interval = std::min(parts_.run.request.print_freq, kMaxSteps);
  const bool first = epoch.done() == 1;  // main.py prints batch 0, then every print_freq-th
  const bool last = epoch.done() == epoch.steps();
  const bool saves = saves_.checkpoint_due(result_.steps) && !last;
  const bool keeps = saves_.kept_state_due(result_.steps);
  if (parts_.replay || first || epoch.done() % interval == 0 || last || saves || keeps ||
      asked_to_stop()) {
    exchange_figures(epoch);
  }
  save_after_step(epoch, saves, keeps);
  observer_.trace().end_step(result_.steps, outputs_.directory);
}

void Training::compare_ranks_if_due() {
  const ExchangeConfig& exchange = parts_.settings.exchange;
  if (!exchange.keeps_replicas() || exchange.check_ranks == 0) return;
  if (result_.steps % exchange.check_ranks != 0) return;
  const TimelineSpan span(step_.timeline(), "compare ranks");
  replicas_.compare(parts_.ranks, result_.steps);
}

void Training::save_after_step(EpochProgress& epoch, bool saves, bool keeps) {
  if (result_.stopped || !(saves || keeps)) return saves_.advance();
  synchronize_replicas();
  if (saves) {
    ask_for_checkpoint();
    saves_.save(position(epoch, Evaluated::kYes));
    epoch.begin_line();
  } else {
    saves_.advance();
  }
  if (keeps) saves_.keep(position(epoch, Evaluated::kNo));
}

// Whether any rank was asked to stop. Where the exchange of gradients does not tell, the ranks ask
// each other every few steps; no device waits for that. A collective call.
bool Training::asked_to_stop() const {
  if (parts_.ranks.size() == 1) return stop_requested();
  if (step_.agrees_on_stops()) return step_.asked_to_stop();
  if (result_.steps % stop_interval_ != 0) return false;
  const std::vector<int64_t> answers = comm::gather_value(parts_.ranks, int64_t{stop_requested()});
  return std::ranges::find(answers, 1) != answers.end();
}

void Training::read_scale() {
  observer_.numerics().read_scale(step_.update(), result_.steps);
  result_.stopped |= observer_.numerics().ends_replay();
}

void Training::exchange_figures(EpochProgress& epoch) {
  const RunRequest& request = parts_.run.request;
  if (parts_.stream.device() != Device::kCpu) read_scale();
  const WindowTotals totals = [&] {
    const TimelineSpan span(step_.timeline(), "figures of ranks");
    return step_.exchange_figures(stop_requested());
  }();
  result_.stopped |= totals.stop;
  const bool first = result_.steps == range_.first + 1;  // it takes longer than others
  if (!first) stop_interval_ = std::min(steps_within(0.2, totals), kMaxSteps);
  const double lr = step_.update().lr();
  observer_.numerics().check_losses(totals, result_.steps, epoch.number(), lr);
  result_.stopped |= observer_.numerics().ends_replay();
  StepMetrics metrics = epoch.update(totals, range_.end - result_.steps, lr);
  metrics.loss_scale = observer_.numerics().scaled().scale;
  metrics.skipped_steps = observer_.numerics().scaled().skipped;
  const int64_t done = epoch.done();
  parts_.console.progress_bar(progress_bar(
      epoch.number(), static_cast<int>(request.epoch_count()), done, epoch.steps(), metrics));
  if (done != 1 && done % request.print_freq != 0 && done != epoch.steps()) return;
  const auto line = request.apex_lines ? apex_progress_line : progress_line;
  parts_.console.progress_line(line(epoch.number(), done, epoch.steps(), metrics));
  log_.append_step(epoch.number(), result_.steps, metrics);
  epoch.begin_line();
}

// Rank 0's batch-norm statistics are the run's. Weights must be equal already, unless the ranks
// exchange nothing: then rank 0's weights are the run's too.
void Training::synchronize_replicas() {
  const TimelineSpan span(step_.timeline(), "compare ranks");
  const bool keeps_replicas = parts_.settings.exchange.keeps_replicas();
  std::vector<Tensor> rank0_state;
  for (const nn::StateEntry& entry : parts_.model.state()) {
    if (!entry.is_parameter || !keeps_replicas) rank0_state.push_back(entry.tensor);
  }
  for (const nn::StateEntry& entry : step_.update().optimizer().state_of_buffers()) {
    rank0_state.push_back(entry.tensor);
  }
  comm::broadcast_tensors(parts_.ranks, rank0_state, step_.device_peers());
  if (keeps_replicas) return replicas_.compare(parts_.ranks, result_.steps);
  step_.update().weights_were_written();
}

// The moving average is of the same step.
void Training::ask_for_checkpoint() {
  saves_.files().checkpoint = true;
  saves_.files().average = step_.update().average() != nullptr;
}

void Training::end_epoch(const EpochProgress& epoch) {
  synchronize_replicas();
  const int number = epoch.number();
  const bool last = result_.steps == range_.end;
  const bool at_end = last && !parts_.replay && !parts_.run.request.no_eval;
  std::optional<Evaluation> evaluation;
  if ((at_end || evaluates_after(number)) && !result_.stopped) evaluation = evaluate_epoch(epoch);
  // A job that is stopped by a signal must not wait for an evaluation; a resumed run begins with
  // it.
  if (result_.stopped) {
    result_.final.reset();
    ask_for_checkpoint();
    return saves_.save(position(epoch, Evaluated::kNo));
  }
  if (outputs_.csv != nullptr) log_epoch(epoch, evaluation);
  if (last || result_.early_stop_epoch || (number + 1) % parts_.run.request.save_freq == 0 ||
      saves_.checkpoint_due(result_.steps)) {
    ask_for_checkpoint();
  }
  saves_.save(position(epoch, Evaluated::kYes));
  if (saves_.kept_state_due(result_.steps)) saves_.keep(position(epoch, Evaluated::kYes));
}

void Training::log_epoch(const EpochProgress& epoch, const std::optional<Evaluation>& evaluation) {
  using std::chrono::duration_cast;
  using std::chrono::system_clock;
  const std::chrono::duration<double> seconds(epoch.seconds());
  log_.append_epoch(*outputs_.csv,
                    {.start = system_clock::now() - duration_cast<system_clock::duration>(seconds),
                     .seconds = seconds.count(),
                     .epoch = epoch.number(),
                     .step = result_.steps,
                     .lr = step_.update().lr(),
                     .train_loss = epoch.loss(),
                     .train_acc1 = epoch.acc1(),
                     .train_acc5 = epoch.acc5(),
                     .evaluation = evaluation});
}

std::optional<Evaluation> Training::evaluate_epoch(const EpochProgress& epoch) {
  const TimelineSpan span(step_.timeline(), "evaluation");
  const std::optional<Evaluation> evaluation = evaluation_.measure();
  std::optional<Evaluation> of_average;
  const bool averages = evaluation && step_.update().average() != nullptr;
  if (averages) {
    of_average = evaluation_.measure_average();
    saves_.files().average = of_average.has_value();
  }
  result_.stopped = !evaluation || (averages && !of_average);
  if (result_.stopped) return std::nullopt;
  const int number = epoch.number();
  const std::string digest =
      outputs_.directory == nullptr ? "" : to_hex(state_digest(parts_.model));
  result_.final = evaluation;
  log_.append_evaluation("val", number, result_.steps, *evaluation, digest);
  log_.append_epoch_events(number, result_.steps, epoch.averages(step_.update().lr()), *evaluation);
  if (of_average) log_.append_evaluation("val-ema", number, result_.steps, *of_average, "");
  const bool stops = epoch.done() == range_.per_epoch && update_schedules(*evaluation, epoch);
  if (!stops || parts_.run.request.early_stopping.last_may_be_best) {
    compare_with_best(*evaluation, number);
  }
  return evaluation;
}

void Training::compare_with_best(const Evaluation& evaluation, int epoch) {
  if (!std::isfinite(evaluation.loss)) {
    parts_.console.warn(
        fmt::format("lockstep: warning: the test loss is {} after epoch {}, which is never the "
                    "best",
                    evaluation.loss,
                    epoch + 1));
    return;
  }
  // The first of equal ones stays, as in main.py.
  if (result_.best.total > 0 && evaluation.correct1 <= result_.best.correct1) return;
  result_.best = {evaluation, epoch};
  saves_.files().best = true;
}

bool Training::update_schedules(const Evaluation& evaluation, const EpochProgress& epoch) {
  const int number = epoch.number();
  WeightUpdate& update = step_.update();
  parts_.console.tutorial(TutorialLines::kTricks,
                          tricks_epoch_line({.number = number,
                                             .epochs = parts_.settings.epoch_count(),
                                             .seconds = epoch.seconds(),
                                             .lr = update.lr(),
                                             .train_loss = epoch.loss(),
                                             .train_acc1 = epoch.acc1(),
                                             .test = evaluation}));
  if (const auto rate = update.end_epoch(number, evaluation.loss, evaluation.acc1())) {
    parts_.console.tutorial(TutorialLines::kTricks, tricks_cut_line(number, *rate));
  }
  early_stopping_.end_epoch(evaluation.loss);
  if (!early_stopping_.stopped()) return false;
  parts_.console.tutorial(TutorialLines::kTricks, "EarlyStopping");
  result_.early_stop_epoch = number;
  return true;
}

TrainingPosition Training::position(const EpochProgress& epoch, Evaluated evaluated) const {
  const bool over = evaluated == Evaluated::kYes && epoch.done() == range_.per_epoch;
  TrainingPosition at{.steps = result_.steps,
                      .epoch = epoch.number() + (over ? 1 : 0),
                      .sums = over ? EpochSums{} : epoch.sums(),
                      .best = static_cast<const Evaluation&>(result_.best),
                      .best_epoch = result_.best.epoch};
  step_.update().describe(at);
  at.early_stopping = early_stopping_.state();
  return at;
}

bool Training::evaluates_after(int epoch) const {
  if (parts_.run.request.no_eval) return false;
  if (step_.update().watches_validation()) return true;
  if (early_stopping_.watches_validation() && !parts_.replay) return true;
  return !parts_.replay && (epoch + 1) % parts_.run.request.eval_freq == 0;
}

bool Training::draws_histograms_after(int64_t step) const {
  const int64_t every = parts_.run.request.histograms;
  return every > 0 && !parts_.replay && step % every == 0;
}

}  // namespace lockstep::trainers
