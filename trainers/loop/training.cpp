#include "trainers/loop/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "comm/replicas.h"
#include "trainers/output/clock.h"
#include "trainers/loop/stop_signal.h"
#include "trainers/loop/training_data.h"
#include "trainers/output/progress.h"

namespace lockstep::trainers {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t run_ranks(const Training::Parts& p) {
  return p.replay ? p.replay->ranks : p.run.batch.ranks;
}

int64_t first_step(const Training::Parts& p, int64_t steps_per_epoch) {
  return p.start ? p.start->steps : p.run.request.start_epoch * steps_per_epoch;
}

// --max-steps counts from the beginning of the run, whichever process took the steps.
int64_t end_step(const Training::Parts& p, int64_t steps_per_epoch) {
  int64_t end = steps_per_epoch * p.run.request.epochs;
  if (p.run.request.max_steps) {
    end = std::min(end, p.run.request.start_epoch * steps_per_epoch + *p.run.request.max_steps);
  }
  if (p.replay) end = std::min(end, p.replay->step);
  return std::max(end, first_step(p, steps_per_epoch));
}

comm::ReducerOptions reducer_options(const Training::Parts& p) {
  comm::ReducerOptions options = reducer_options(p.run.request.exchange, p.run.batch.micro_steps);
  options.on_device = p.exchange;
  return options;
}

// A fault has a part in the middle of a step.
bool runs_as_graph(const Training::Parts& p) {
  return p.run.runs_as_graph() && !p.fault;
}

}  // namespace

Training::Training(const Parts& parts)
    : p_(parts),
      log_(nullptr, p_.console),
      reducer_(p_.ranks,
               p_.stream,
               p_.model.parameters(),
               p_.model.parameter_names(),
               reducer_options(p_)),
      batch_norm_peers_(p_.ranks),
      groups_span_ranks_(
          any_group_spans_ranks(p_.run.batch.shards, p_.run.batch.bn_groups, p_.run.batch.ranks)),
      steps_per_epoch_(data::steps_per_epoch(batch_plan(p_.run, *p_.data.train, p_.ranks))),
      update_(p_.run, p_.stream, p_.model, steps_per_epoch_),
      numerics_(
          {.when = p_.replay ? NumericsWatch::When::kEveryStep : NumericsWatch::When::kTenthSkip,
           .run_ranks = run_ranks(p_),
           .plan = batch_plan(p_.run, *p_.data.train, p_.ranks)},
          p_.stream,
          p_.model),
      replicas_(p_.model, update_.optimizer()),
      first_step_(first_step(p_, steps_per_epoch_)),
      end_step_(end_step(p_, steps_per_epoch_)),
      batches_(p_.run, p_.data.train, p_.ranks, p_.stream, first_step_, end_step_),
      skipped_(p_.data.train->size(), warn_of_images),
      skipped_in_test_(p_.data.test->size(), warn_of_images),
      graph_(p_.stream, runs_as_graph(p_)) {
  result_.steps = first_step_;
  if (p_.fault && p_.fault->is_of_gradient()) {
    gradient_fault_.emplace(*p_.fault, p_.model, run_ranks(p_));
  }
  scaled_ = update_.scaled();
  if (!p_.start) return;
  result_.best = p_.start->best;
  result_.best_epoch = static_cast<int>(p_.start->best_epoch);
  update_.restore(*p_.start);
  scaled_ = update_.scaled();
}

void Training::restore(const FileTensors& optimizer, const std::string& file) {
  const std::vector<nn::StateEntry> entries = update_.optimizer().state();
  const std::vector<std::string> problems = misfits(entries, optimizer);
  if (!problems.empty()) {
    throw CheckpointError(fmt::format("the optimizer's state in {} does not fit", file),
                          first_of(problems),
                          "--opt, --momentum and --ema as in the run that made it");
  }
  copy_into(entries, optimizer);
}

// Rank 0 holds the initial weights, or what it read from a checkpoint.
void Training::share_start() {
  std::vector<Tensor> tensors;
  for (const nn::StateEntry& entry : p_.model.state()) tensors.push_back(entry.tensor);
  if (p_.start) {
    for (const nn::StateEntry& entry : update_.optimizer().state()) {
      tensors.push_back(entry.tensor);
    }
  }
  comm::broadcast_tensors(p_.ranks, tensors, reducer_.device_peers());
  update_.weights_were_written();
}

TrainingResult Training::run(const Traces& traces) {
  traces_ = traces;
  log_ = RunLog(traces.directory, p_.console);
  share_start();
  EpochSums sums = p_.start ? p_.start->sums : EpochSums{};
  auto epoch = static_cast<int>(p_.start ? p_.start->epoch : p_.run.request.start_epoch);
  // An epoch in hand may want nothing but its evaluation.
  while ((result_.steps < end_step_ || sums.steps > 0) && !result_.stopped) {
    const int64_t epoch_steps = std::min(steps_per_epoch_, end_step_ - result_.steps + sums.steps);
    EpochProgress progress(epoch, epoch_steps, std::exchange(sums, {}));
    p_.console.tutorial(
        fmt::format("begin training of epoch {}/{}", epoch + 1, p_.run.request.epochs));
    while (progress.done() < progress.steps() && !result_.stopped) train_step(progress);
    result_.images += progress.images();
    result_.training_s += progress.seconds();
    end_epoch(progress);
    ++epoch;
  }
  if (!result_.final && !result_.stopped && !p_.replay) result_.final = measure();
  if (traces_.checkpoints != nullptr && result_.steps > first_step_) {
    result_.saved = traces_.checkpoints->last_is_saved();
  }
  result_.communication = exchange_log_.summarize(p_.ranks);
  return result_;
}

void Training::train_step(EpochProgress& epoch) {
  const StepStart start = {.traffic = p_.ranks.traffic(),
                           .batch_norm_s = batch_norm_peers_.seconds(),
                           .data_s = batches_.waited_seconds(),
                           .loader = batches_.seconds()};
  numerics_.begin_step(result_.steps + 1, scaled_.scale, scaled_.consecutive_skips);
  if (runs_as_graph(p_) && numerics_.listener() == nullptr) {
    step_as_graph(start);
  } else {
    step_by_step(start);
  }
  epoch.end_step(seconds_since(start.time), batches_.waited_seconds() - start.data_s);
  ++result_.steps;
  // On a device the step would be waited for.
  if (p_.stream.device() == Device::kCpu || numerics_.listener() != nullptr) look_at_scale();
  if (result_.first_step_s == 0) result_.first_step_s = seconds_since_process_start();
  inject(p_.fault, p_.ranks.rank(), result_.steps, p_.model);

  const int64_t check_ranks = p_.run.request.exchange.check_ranks;
  if (p_.run.request.exchange.keeps_replicas() && check_ranks > 0 &&
      result_.steps % check_ranks == 0) {
    replicas_.compare(p_.ranks, result_.steps);
  }
  constexpr int64_t kStopLatency = 10;  // steps until ranks agree to stop
  const int64_t interval = std::min(p_.run.request.print_freq, kStopLatency);
  const bool first = epoch.done() == 1;  // main.py prints batch 0, then every print_freq-th
  const bool last = epoch.done() == epoch.steps();
  const bool saves = saves_after(result_.steps) && !last;
  if (p_.replay || first || epoch.done() % interval == 0 || last || saves) compare_notes(epoch);
  if (saves && !result_.stopped) {
    synchronize_replicas();
    save(position(epoch, Evaluated::kYes));
  }
}

void Training::step_by_step(const StepStart& start) {
  update_.optimizer().zero_grad();
  int64_t images = 0;
  for (int64_t micro = 0; micro < p_.run.batch.micro_steps; ++micro) {
    if (micro > 0) reducer_.next_micro_step();
    const TrainingBatches::MicroStep batch = next_batch();
    window_.add(learn(batch.images, batch.labels, batch.mix));
    images += batch.shards().images();
  }
  delay(p_.fault, p_.ranks.rank());
  reducer_.finish();
  log_exchange(start, images, reducer_.times());
  update_.step(result_.steps);
}

void Training::step_as_graph(const StepStart& start) {
  const TrainingBatches::MicroStep batch = next_batch();
  const auto step = [&](const Var& images, const Tensor& labels, const Tensor& mix) {
    update_.optimizer().zero_grad();
    nn::CrossEntropy figures = learn(images, labels, mix);
    reducer_.finish();
    update_.step(result_.steps);
    return figures;
  };
  window_.add(graph_.run(batch.images, batch.labels, batch.mix, step));
  if (graph_.repeated()) p_.model.count_step();
  log_exchange(start, batch.shards().images(), {});
}

TrainingBatches::MicroStep Training::next_batch() {
  const auto listener = [&](const Shards& shards) {
    TapeListener* const watch = numerics_.listener();
    return gradient_fault_ ? gradient_fault_->listener(result_.steps + 1, shards, watch) : watch;
  };
  TrainingBatches::GroupPeers peers;
  if (groups_span_ranks_) peers = {&batch_norm_peers_, reducer_.device_peers()};
  TrainingBatches::MicroStep batch = batches_.next(peers, listener);
  skipped_.note(batch.skipped);
  numerics_.begin_micro_step(batch.images);
  return batch;
}

nn::CrossEntropy Training::learn(const Var& images, const Tensor& labels, const Tensor& mix) {
  nn::CrossEntropy result = nn::softmax_cross_entropy(
      p_.model.forward(images),
      labels,
      {.label_smoothing = static_cast<float>(p_.run.request.label_smoothing), .mix = mix});
  result.loss.backward(update_.seed(images.shards().local()));
  return result;
}

void Training::look_at_scale() {
  scaled_ = update_.look(result_.steps);
  if (const auto& scaling = p_.run.request.precision.loss_scaling;
      scaling && scaled_.newly_skipped > 0) {
    p_.console.info(overflow_line(scaling->dynamic, scaled_.scale));
  }
  if (!numerics_.end_step(scaled_.scale, scaled_.consecutive_skips)) return;
  report_numerics(Trouble::kSkips,
                  fmt::format("{} steps in a row were skipped", scaled_.consecutive_skips),
                  result_.steps);
}

// Own time ends where waiting begins, so a rank that others wait for is not blamed for their delay.
void Training::log_exchange(const StepStart& start,
                            int64_t images,
                            const comm::ExchangeTimes& exchange) {
  const double all_s = seconds_since(start.time);
  const double batch_norm_s = batch_norm_peers_.seconds() - start.batch_norm_s;
  const double exposed_s = exchange.exposed_s + batch_norm_s;
  const RankSeconds seconds = {.own = all_s - exposed_s,
                               .exposed = exposed_s,
                               .hidden = exchange.hidden_s,
                               .loader = batches_.seconds() - start.loader};
  const Traffic& traffic = p_.ranks.traffic();
  window_.end_step(seconds);
  exchange_log_.add(
      {.begin = start.time,
       .seconds = seconds,
       .exchange = exchange,
       .traffic = {.moved_bytes = traffic.moved_bytes - start.traffic.moved_bytes,
                   .reduced_bytes = traffic.reduced_bytes - start.traffic.reduced_bytes},
       .images = images});
}

void Training::compare_notes(EpochProgress& epoch) {
  if (p_.stream.device() != Device::kCpu) look_at_scale();
  const WindowTotals totals = window_.exchange(p_.ranks, stop_requested(), skipped_.noted());
  if (totals.skipped_photos > 0) skipped_.agree(p_.ranks);
  result_.stopped |= totals.stop;
  check_losses(totals, epoch.number());
  StepMetrics metrics = epoch.update(totals, end_step_ - result_.steps, update_.lr());
  metrics.loss_scale = scaled_.scale;
  metrics.skipped_steps = scaled_.skipped;
  const int64_t done = epoch.done();
  p_.console.progress_bar(progress_bar(
      epoch.number(), static_cast<int>(p_.run.request.epochs), done, epoch.steps(), metrics));
  if (done != 1 && done % p_.run.request.print_freq != 0 && done != epoch.steps()) return;
  const auto line = p_.run.request.apex_lines ? apex_progress_line : progress_line;
  p_.console.progress_line(line(epoch.number(), done, epoch.steps(), metrics));
  log_.append_step(epoch.number(), result_.steps, seconds_since_process_start(), metrics);
}

void Training::check_losses(const WindowTotals& totals, int epoch) {
  for (size_t i = 0; i < totals.losses.size(); ++i) {
    if (std::isfinite(totals.losses[i])) continue;
    const int64_t step = result_.steps - std::ssize(totals.losses) + static_cast<int64_t>(i) + 1;
    const std::string what =
        fmt::format("the loss is {}", std::isnan(totals.losses[i]) ? "nan" : "infinite");
    report_numerics(Trouble::kLoss, what, step);
    if (p_.replay) return;
    throw DivergedError(
        fmt::format("{} at step {} (epoch {})", what, step, epoch + 1),
        fmt::format("training diverged at learning rate {:g}, or an input is not finite",
                    update_.lr()),
        fmt::format("a smaller --lr; `lockstep replay {}` names the tensor that it began in",
                    p_.run.output_dir));
  }
}

// On all ranks. A replay has then done what it was for.
void Training::report_numerics(Trouble trouble, std::string what, int64_t step) {
  const NumericsReport report = numerics_.report(p_.ranks, trouble, std::move(what), step);
  if (numerics_.listener() != nullptr) {
    for (const std::string& line : lines(report)) p_.console.warn(line);
  }
  log_.write_numerics(to_json(report));
  reported_ = report;
  if (p_.replay) result_.stopped = true;
}

// Rank 0's batch-norm statistics are the run's; weights must be equal already, unless the ranks do
// without an exchange: then rank 0's are the run's too.
void Training::synchronize_replicas() {
  const bool keeps_replicas = p_.run.request.exchange.keeps_replicas();
  std::vector<Tensor> rank0s;
  for (const nn::StateEntry& entry : p_.model.state()) {
    if (!entry.is_parameter || !keeps_replicas) rank0s.push_back(entry.tensor);
  }
  if (const nn::Ema* average = update_.average()) {
    const std::span<const Tensor> counted = average->buffer_averages();
    rank0s.insert(rank0s.end(), counted.begin(), counted.end());
  }
  comm::broadcast_tensors(p_.ranks, rank0s, reducer_.device_peers());
  if (keeps_replicas) return replicas_.compare(p_.ranks, result_.steps);
  update_.weights_were_written();
}

void Training::end_epoch(const EpochProgress& epoch) {
  synchronize_replicas();
  const int number = epoch.number();
  const bool last = result_.steps == end_step_;
  if (((last && !p_.replay) || evaluates_after(number)) && !result_.stopped) {
    const std::optional<Evaluation> evaluation = measure();
    const std::optional<Evaluation> of_average = measure_average(epoch);
    if (evaluation && !result_.stopped) {
      result_.final = evaluation;
      log_evaluation("val", number, *evaluation, digest());
      if (of_average) log_evaluation("val-ema", number, *of_average, "");
      if (epoch.done() == steps_per_epoch_) {
        update_.end_epoch(number, evaluation->loss, evaluation->acc1());
      }
      judge(epoch, *evaluation);
    }
  }
  // Who stops a job by a signal does not wait for an evaluation: a resumed run begins with it.
  if (result_.stopped) {
    result_.final.reset();
    save(position(epoch, Evaluated::kNo));
    return;
  }
  if (last || (number + 1) % p_.run.request.save_freq == 0 || saves_after(result_.steps)) {
    save(position(epoch, Evaluated::kYes));
  }
}

TrainingPosition Training::position(const EpochProgress& epoch, Evaluated evaluated) const {
  const bool over = evaluated == Evaluated::kYes && epoch.done() == steps_per_epoch_;
  TrainingPosition at{.steps = result_.steps,
                      .epoch = epoch.number() + (over ? 1 : 0),
                      .sums = over ? EpochSums{} : epoch.sums(),
                      .best = result_.best,
                      .best_epoch = result_.best_epoch};
  update_.describe(at);
  return at;
}

void Training::save(const TrainingPosition& at) {
  if (traces_.checkpoints != nullptr) traces_.checkpoints->save(p_.model, update_.optimizer(), at);
}

bool Training::evaluates_after(int epoch) const {
  if (update_.watches_validation()) return true;
  return !p_.console.options().tutorial && !p_.replay &&
         (epoch + 1) % p_.run.request.eval_freq == 0;
}

bool Training::saves_after(int64_t step) const {
  return p_.run.request.save_steps && step % *p_.run.request.save_steps == 0;
}

}  // namespace lockstep::trainers
