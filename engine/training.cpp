#include "engine/training.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "comm/gather.h"
#include "comm/replicas.h"
#include "core/error.h"

namespace lockstep {
namespace {

// Returns how many steps like those of the window take this long; the same on all ranks.
int64_t steps_within(double seconds, const WindowTotals& window) {
  const double step_s = window.seconds / static_cast<double>(window.losses.size());
  return std::max(static_cast<int64_t>(seconds / std::max(step_s, 1e-3)), int64_t{1});
}

bool this_rank_is_asked_to_stop(const StepHooks& hooks) {
  return hooks.asked_to_stop && hooks.asked_to_stop();
}

}  // namespace

Training::Training(const StepInputs& inputs, const TrainingPlan& plan, TrainingObserver& observer)
    : inputs_(inputs),
      plan_(plan),
      observer_(observer),
      step_(inputs, plan_.range, observer),
      early_stopping_(plan_.early_stopping),
      replicas_(inputs.model, step_.update().optimizer()),
      skipped_tests_(inputs.data.test->size(), inputs.hooks.warn) {
  result_.steps = plan_.range.first;
  if (const std::optional<TrainingPosition>& start = plan_.start) {
    result_.best = {start->best, static_cast<int>(start->best_epoch)};
    step_.update().restore(*start);
    early_stopping_.restore(start->early_stopping);
    if (early_stopping_.stopped()) result_.early_stop_epoch = start->epoch - 1;
  }
  scaled_ = step_.update().scaled();
}

void Training::share_weights() {
  std::vector<Tensor> tensors = nn::tensors_of(inputs_.model.state());
  if (plan_.start) {
    const std::vector<Tensor> more = nn::tensors_of(step_.update().optimizer().state());
    tensors.insert(tensors.end(), more.begin(), more.end());
  }
  comm::broadcast_tensors(inputs_.ranks, tensors, step_.device_peers());
  step_.update().weights_were_written();
}

TrainingResult Training::run() {
  while (goes_on()) {
    begin_epoch();
    while (in_epoch() && !result_.stopped) train_step();
    end_epoch();
  }
  if (!result_.final && !result_.stopped && plan_.evaluation_epochs > 0) {
    result_.final = evaluate(observer_.begin_evaluation());
    result_.stopped = !result_.final;
    if (result_.final) observer_.end_evaluation(*result_.final);
  }
  const int64_t taken = result_.steps - inputs_.settings.start_epoch * plan_.range.per_epoch;
  result_.skipped = {.count = scaled_.skipped, .all = taken > 0 && scaled_.skipped >= taken};
  result_.communication = step_.summarize();
  return result_;
}

// The current epoch of an earlier process may only need its evaluation.
bool Training::goes_on() const {
  const bool is_unfinished = !epoch_ && plan_.start && plan_.start->sums.steps > 0;
  const bool has_work = result_.steps < plan_.range.end || is_unfinished;
  return has_work && !result_.stopped && !result_.early_stop_epoch;
}

void Training::begin_epoch() {
  int64_t number = inputs_.settings.start_epoch;
  if (plan_.start) number = plan_.start->epoch;
  if (epoch_) number = epoch_->number() + 1;
  const EpochSums before = plan_.start && !epoch_ ? plan_.start->sums : EpochSums{};
  const int64_t left = plan_.range.end - result_.steps + before.steps;
  epoch_ = std::make_unique<EpochProgress>(static_cast<int>(number),
                                           std::min(plan_.range.per_epoch, left),
                                           inputs_.batch.images,
                                           before);
  epoch_is_over_ = false;
  observer_.begin_epoch(*this);
}

void Training::train_step() {
  if (!in_epoch()) begin_epoch();
  const TrainingStep::Seconds seconds = step_.take(result_.steps);
  epoch_->end_step(seconds.all, seconds.data);
  ++result_.steps;
  const bool is_first = result_.steps == plan_.range.first + 1;  // it takes longer than others
  if (!is_first) result_.step_times.add(seconds.all);
  // On a device, reading the scale waits for the step.
  const bool reads_scale = inputs_.stream.device() == Device::kCpu || observer_.needs_host();
  if (reads_scale) read_scale();
  observer_.after_step(*this);
  compare_ranks_if_due();
  if (figures_are_due()) {
    if (!reads_scale) read_scale();
    exchange_figures();
  }
  observer_.end_step(*this);
}

void Training::compare_ranks_if_due() {
  const ExchangeConfig& exchange = inputs_.settings.exchange;
  if (!exchange.keeps_replicas() || exchange.check_ranks == 0) return;
  if (result_.steps % exchange.check_ranks != 0) return;
  const TimelineSpan span(step_.timeline(), "compare ranks");
  replicas_.compare(inputs_.ranks, result_.steps);
}

bool Training::figures_are_due() {
  const int64_t interval = std::min(plan_.figure_steps, kMaxSteps);
  const int64_t done = epoch_->done();
  return observer_.wants_figures(*this) || done == 1 || done % interval == 0 || !in_epoch() ||
         asked_to_stop();
}

// Whether any rank was asked to stop. Where the exchange of gradients does not tell, the ranks ask
// each other every few steps; no device waits for that. A collective call.
bool Training::asked_to_stop() const {
  const bool asked = this_rank_is_asked_to_stop(inputs_.hooks);
  if (inputs_.ranks.size() == 1) return asked;
  if (step_.agrees_on_stops()) return step_.asked_to_stop();
  if (result_.steps % stop_interval_ != 0) return false;
  const std::vector<int64_t> answers = comm::gather_value(inputs_.ranks, int64_t{asked});
  return std::ranges::find(answers, 1) != answers.end();
}

void Training::read_scale() {
  scaled_ = step_.update().read_scale(result_.steps);
  const std::optional<LossScaling>& scaling = inputs_.settings.precision.loss_scaling;
  if (scaling && scaled_.newly_skipped > 0) {
    observer_.on_overflow(overflow_line(scaling->dynamic, scaled_.scale));
  }
  observer_.on_scale(*this, scaled_);
}

void Training::exchange_figures() {
  const WindowTotals totals = [&] {
    const TimelineSpan span(step_.timeline(), "figures of ranks");
    return step_.exchange_figures(this_rank_is_asked_to_stop(inputs_.hooks));
  }();
  result_.stopped |= totals.stop;
  const bool is_first = result_.steps == plan_.range.first + 1;
  if (!is_first) stop_interval_ = std::min(steps_within(0.2, totals), kMaxSteps);
  check_losses(totals.losses);
  const double lr = step_.update().lr();
  StepMetrics metrics = epoch_->update(totals, plan_.range.end - result_.steps, lr);
  metrics.loss_scale = scaled_.scale;
  metrics.skipped_steps = scaled_.skipped;
  observer_.on_figures(*this, metrics);
}

void Training::check_losses(const std::vector<float>& losses) {
  const auto bad = std::ranges::find_if_not(losses, [](float x) { return std::isfinite(x); });
  if (bad == losses.end()) return;
  const int64_t step = result_.steps - (losses.end() - bad) + 1;
  observer_.on_infinite_loss(
      *this,
      *bad,
      step,
      DivergedError(
          fmt::format("the loss is {} at step {} (epoch {})",
                      std::isnan(*bad) ? "nan" : "infinite",
                      step,
                      epoch_->number() + 1),
          fmt::format("training diverged at learning rate {:g}, or an input is not finite",
                      step_.update().lr()),
          "a smaller optimizer.lr, or optimizer.clip_grad_norm 1"));
}

void Training::share_buffers() {
  const bool keeps_replicas = inputs_.settings.exchange.keeps_replicas();
  std::vector<Tensor> rank0_state;
  for (const nn::StateEntry& entry : inputs_.model.state()) {
    if (!entry.is_parameter || !keeps_replicas) rank0_state.push_back(entry.tensor);
  }
  for (const nn::StateEntry& entry : step_.update().optimizer().state_of_buffers()) {
    rank0_state.push_back(entry.tensor);
  }
  comm::broadcast_tensors(inputs_.ranks, rank0_state, step_.device_peers());
  if (!keeps_replicas) step_.update().weights_were_written();
}

void Training::synchronize_replicas() {
  const TimelineSpan span(step_.timeline(), "compare ranks");
  share_buffers();
  if (inputs_.settings.exchange.keeps_replicas()) replicas_.compare(inputs_.ranks, result_.steps);
}

std::optional<Evaluation> Training::evaluate(EvaluationObserver* observer) {
  EvaluationTask task = plan_.test;
  task.observer = observer;
  return evaluate(std::move(task));
}

std::optional<Evaluation> Training::evaluate(EvaluationTask task) {
  task.skipped = &skipped_tests_;
  const auto memory = step_.use_memory();
  return lockstep::evaluate(task, inputs_.stream, inputs_.ranks);
}

bool Training::evaluates_after_epoch() const {
  if (step_.update().watches_validation() || early_stopping_.watches_validation()) return true;
  const int64_t every = plan_.evaluation_epochs;
  return every > 0 && (result_.steps == plan_.range.end || (epoch_->number() + 1) % every == 0);
}

void Training::end_epoch() {
  result_.images += epoch_->images();
  result_.training_s += epoch_->seconds();
  synchronize_replicas();
  std::optional<EpochEvaluation> found;
  if (!result_.stopped && evaluates_after_epoch()) found = evaluate_epoch();
  // A job that is stopped by a signal must not wait for an evaluation; one that goes on begins with
  // it.
  if (result_.stopped) result_.final.reset();
  epoch_is_over_ = !result_.stopped;
  observer_.end_epoch(*this, found ? &*found : nullptr);
}

std::optional<EpochEvaluation> Training::evaluate_epoch() {
  const TimelineSpan span(step_.timeline(), "evaluation");
  result_.final = evaluate(observer_.begin_evaluation());
  result_.stopped = !result_.final;
  if (result_.stopped) return std::nullopt;
  observer_.end_evaluation(*result_.final);
  EpochEvaluation found{.weights = *result_.final};
  if (step_.update().average() != nullptr) {
    EvaluationTask silent = plan_.test;
    silent.on_batch = {};
    step_.update().with_average([&] { found.average = evaluate(silent); });
    result_.stopped = !found.average;
    if (result_.stopped) return std::nullopt;
  }
  follow_schedules(found);
  return found;
}

void Training::follow_schedules(EpochEvaluation& found) {
  const Evaluation& evaluation = found.weights;
  if (epoch_->done() == plan_.range.per_epoch) {
    found.cut_rate = step_.update().end_epoch(epoch_->number(), evaluation.loss, evaluation.acc1());
    early_stopping_.end_epoch(evaluation.loss);
    if (early_stopping_.stopped()) result_.early_stop_epoch = epoch_->number();
  }
  if (result_.early_stop_epoch && !plan_.early_stopping.last_may_be_best) return;
  // The first of equal ones stays, as in main.py.
  found.is_best = std::isfinite(evaluation.loss) &&
                  (result_.best.total == 0 || evaluation.correct1 > result_.best.correct1);
  if (found.is_best) result_.best = {evaluation, epoch_->number()};
}

TrainingPosition Training::position() const {
  const bool over = epoch_is_over_ && epoch_->done() == plan_.range.per_epoch;
  TrainingPosition at{.steps = result_.steps,
                      .epoch = epoch_->number() + (over ? 1 : 0),
                      .sums = over ? EpochSums{} : epoch_->sums(),
                      .best = static_cast<const Evaluation&>(result_.best),
                      .best_epoch = result_.best.epoch};
  step_.update().describe(at);
  at.early_stopping = early_stopping_.state();
  return at;
}

}  // namespace lockstep
