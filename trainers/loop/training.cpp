#include "trainers/loop/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "comm/replicas.h"
#include "core/digest.h"
#include "trainers/loop/make_optimizer.h"
#include "trainers/loop/normalization.h"
#include "trainers/loop/process_time.h"
#include "trainers/loop/stop_signal.h"
#include "trainers/output/model_file.h"

namespace lockstep::trainers {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

data::BatchPlan batch_plan(const Training::Parts& p) {
  return {.dataset_size = p.data.train->size(),
          .global_batch = p.config.global_batch,
          .micro_steps = p.config.micro_steps,
          .shards = p.config.shards,
          .groups = p.config.bn_groups,
          .rank = p.ranks.rank(),
          .ranks = p.ranks.size(),
          .seed = p.config.seed};
}

}  // namespace

Training::Training(const Parts& parts)
    : p_(parts),
      reducer_(p_.ranks,
               p_.stream,
               p_.model.parameters(),
               p_.model.parameter_names(),
               reducer_options(p_.config.exchange, p_.config.micro_steps)),
      optimizer_(make_optimizer(p_.config.optimizer, p_.model.named_parameters())),
      replicas_(p_.model, *optimizer_),
      normalization_(normalization(p_.config, *p_.data.train)),
      batch_norm_peers_(p_.ranks),
      groups_span_ranks_(
          any_group_spans_ranks(p_.config.shards, p_.config.bn_groups, p_.config.ranks)),
      steps_per_epoch_(data::steps_per_epoch(batch_plan(p_))),
      schedule_(p_.config.optimizer.schedule,
                p_.config.optimizer.base_lr(p_.config.global_batch),
                p_.config.epochs,
                steps_per_epoch_),
      end_step_(std::min(steps_per_epoch_ * p_.config.epochs,
                         p_.config.max_steps.value_or(std::numeric_limits<int64_t>::max()))),
      loader_(p_.data.train,
              data::training_sequence(batch_plan(p_), 0, end_step_),
              {.workers = static_cast<int>(p_.config.workers)}) {}

TrainingResult Training::run() {
  std::vector<Tensor> initial;
  for (const nn::StateEntry& entry : p_.model.state()) initial.push_back(entry.tensor);
  comm::broadcast_tensors(p_.ranks, initial);

  for (int epoch = 0; result_.steps < end_step_ && !result_.stopped; ++epoch) {
    EpochProgress progress(epoch, std::min(steps_per_epoch_, end_step_ - result_.steps));
    p_.console.tutorial(fmt::format("begin training of epoch {}/{}", epoch + 1, p_.config.epochs));
    while (progress.done() < progress.steps() && !result_.stopped) train_step(progress);
    result_.images += progress.images();
    result_.training_s += progress.seconds();
    end_epoch(epoch);
  }
  result_.communication = exchange_log_.summarize(p_.ranks);
  return result_;
}

void Training::train_step(EpochProgress& epoch) {
  const StepStart start = {.traffic = p_.ranks.traffic(),
                           .batch_norm_s = batch_norm_peers_.seconds(),
                           .data_s = loader_.waited_seconds()};
  optimizer_->zero_grad();
  int64_t images = 0;
  for (int64_t micro = 0; micro < p_.config.micro_steps; ++micro) {
    if (micro > 0) reducer_.next_micro_step();
    images += backward();
  }
  delay(p_.fault, p_.ranks.rank());
  reducer_.finish();
  log_exchange(start, images);
  optimizer_->set_lr(schedule_.lr(result_.steps));
  optimizer_->step(p_.stream);

  epoch.end_step(seconds_since(start.time), loader_.waited_seconds() - start.data_s);
  ++result_.steps;
  if (result_.steps == 1) result_.first_step_s = seconds_since_process_start();
  inject(p_.fault, p_.ranks.rank(), result_.steps, p_.model);

  const int64_t check_ranks = p_.config.exchange.check_ranks;
  if (p_.config.exchange.keeps_replicas() && check_ranks > 0 && result_.steps % check_ranks == 0) {
    replicas_.compare(p_.ranks, result_.steps);
  }
  constexpr int64_t kStopLatency = 10;  // steps until ranks agree to stop
  const int64_t interval = std::min(p_.config.print_freq, kStopLatency);
  const bool first = epoch.done() == 1;  // main.py prints batch 0, then every print_freq-th
  if (first || epoch.done() % interval == 0 || epoch.done() == epoch.steps()) {
    compare_notes(epoch);
  }
}

int64_t Training::backward() {
  data::LoadedBatch batch = loader_.next();
  if (groups_span_ranks_) batch.shards.peers = &batch_norm_peers_;
  const Var images =
      nn::normalize_image(batch.images, nn::make_batch(p_.stream, batch.shards), normalization_);
  nn::CrossEntropy result =
      nn::softmax_cross_entropy(p_.model.forward(images),
                                batch.labels,
                                {.label_smoothing = static_cast<float>(p_.config.label_smoothing)});
  window_.add(result);
  result.loss.backward();
  return batch.shards.images();
}

// Own time ends where waiting begins, so a rank that others wait for is not blamed for their delay.
void Training::log_exchange(const StepStart& start, int64_t images) {
  const comm::ExchangeTimes& exchange = reducer_.times();
  const double all_s = seconds_since(start.time);
  const double batch_norm_s = batch_norm_peers_.seconds() - start.batch_norm_s;
  const double exposed_s = exchange.exposed_s + batch_norm_s;
  const RankSeconds seconds = {
      .own = all_s - exposed_s, .exposed = exposed_s, .hidden = exchange.hidden_s};
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
  const WindowTotals totals = window_.exchange(p_.ranks, stop_requested());
  result_.stopped = totals.stop;
  check_losses(totals, epoch.number());
  const StepMetrics metrics = epoch.update(totals, end_step_ - result_.steps, last_lr());
  const int64_t done = epoch.done();
  p_.console.progress_bar(progress_bar(
      epoch.number(), static_cast<int>(p_.config.epochs), done, epoch.steps(), metrics));
  if (done != 1 && done % p_.config.print_freq != 0 && done != epoch.steps()) return;
  p_.console.progress_line(progress_line(epoch.number(), done, epoch.steps(), metrics));
  if (p_.directory != nullptr) record(epoch, metrics);
}

void Training::check_losses(const WindowTotals& totals, int epoch) const {
  for (size_t i = 0; i < totals.losses.size(); ++i) {
    if (std::isfinite(totals.losses[i])) continue;
    const int64_t step = result_.steps - std::ssize(totals.losses) + static_cast<int64_t>(i) + 1;
    throw DivergedError(
        fmt::format("the loss is {} at step {} (epoch {})",
                    std::isnan(totals.losses[i]) ? "nan" : "infinite",
                    step,
                    epoch + 1),
        fmt::format("training diverged at learning rate {:g}, or an input is not finite",
                    last_lr()),
        "a smaller --lr");
  }
}

void Training::record(const EpochProgress& epoch, const StepMetrics& metrics) const {
  p_.directory->append({{"split", "train"},
                        {"epoch", int64_t{epoch.number()}},
                        {"step", result_.steps},
                        {"t", seconds_since_process_start()},
                        {"loss", metrics.loss},
                        {"loss_avg", metrics.loss_avg},
                        {"acc1", metrics.acc1},
                        {"acc5", metrics.acc5},
                        {"lr", metrics.lr},
                        {"img_s", metrics.images_per_s},
                        {"step_s", metrics.step_s_avg},
                        {"data_s", metrics.data_s_avg},
                        {"comm_exposed_s", metrics.comm_exposed_s},
                        {"comm_hidden_s", metrics.comm_hidden_s},
                        {"slowest_rank", int64_t{metrics.slowest_rank}},
                        {"skew", metrics.skew}});
}

// Rank 0's batch-norm statistics are the run's; weights must be equal already, unless the ranks do
// without an exchange: then rank 0's are the run's too.
void Training::synchronize_replicas() {
  const bool keeps_replicas = p_.config.exchange.keeps_replicas();
  std::vector<Tensor> rank0s;
  for (const nn::StateEntry& entry : p_.model.state()) {
    if (!entry.is_parameter || !keeps_replicas) rank0s.push_back(entry.tensor);
  }
  comm::broadcast_tensors(p_.ranks, rank0s);
  if (keeps_replicas) replicas_.compare(p_.ranks, result_.steps);
}

void Training::end_epoch(int epoch) {
  synchronize_replicas();
  const bool last = result_.stopped || result_.steps == end_step_;
  if (p_.console.options().tutorial && !last && !schedule_.watches_validation()) return;
  p_.console.tutorial("begin testing");
  const Evaluation evaluation = evaluate({.model = p_.model,
                                          .dataset = p_.data.test,
                                          .normalization = normalization(p_.config, *p_.data.test),
                                          .chunk_images = p_.config.val_batch_size,
                                          .workers = p_.config.workers},
                                         p_.stream,
                                         p_.ranks);
  p_.console.info(
      fmt::format(" * Acc@1 {:.3f} Acc@5 {:.3f}", evaluation.acc1(), evaluation.acc5()));
  const bool whole = !result_.stopped && result_.steps % steps_per_epoch_ == 0;
  if (whole) schedule_.end_epoch(epoch, evaluation.loss, evaluation.acc1());
  result_.final = evaluation;
  if (evaluation.correct1 >= result_.best.correct1) {
    result_.best = evaluation;
    result_.best_epoch = epoch;
  }
  if (p_.directory == nullptr) return;
  p_.directory->append({{"split", "val"},
                        {"epoch", int64_t{epoch}},
                        {"step", result_.steps},
                        {"t", seconds_since_process_start()},
                        {"loss", evaluation.loss},
                        {"acc1", evaluation.acc1()},
                        {"acc5", evaluation.acc5()},
                        {"correct", evaluation.correct1},
                        {"total", evaluation.total},
                        {"digest", to_hex(state_digest(p_.model))}});
}

}  // namespace lockstep::trainers
