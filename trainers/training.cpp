#include "trainers/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "comm/replicas.h"
#include "core/digest.h"
#include "data/batch_plan.h"
#include "data/loader.h"
#include "trainers/model_file.h"
#include "trainers/normalization.h"
#include "trainers/process_time.h"
#include "trainers/step_window.h"
#include "trainers/stop_signal.h"

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

class Training::Epoch {
 public:
  Epoch(int epoch, int64_t epoch_steps, data::Loader& batches, const Training& training)
      : number(epoch),
        steps(epoch_steps),
        loader(batches),
        training_(training),
        start_(Clock::now()) {}

  const int number;
  const int64_t steps;
  data::Loader& loader;
  int64_t done = 0;
  StepWindow window;
  bool stop = false;

  void begin_step() { step_start_ = Clock::now(); }
  void end_step() {
    last_step_s_ = seconds_since(step_start_);
    last_data_s_ = loader.waited_seconds() - data_s_before_;
    data_s_before_ = loader.waited_seconds();
    data_s_ += last_data_s_;
    ++done;
  }

  // What `totals` adds to the epoch, as the log line shows it.
  StepMetrics update(const WindowTotals& totals) {
    for (const float loss : totals.losses) loss_sum_ += loss;
    correct1_ += totals.correct1;
    correct5_ += totals.correct5;
    images_ += totals.images;
    const double window_s = seconds_since(start_) - window_start_s_;
    window_start_s_ += window_s;
    const auto steps_done = static_cast<double>(done);
    const auto percent = [](int64_t part, int64_t whole) {
      return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    };
    const double step_s = seconds_since(start_) / steps_done;
    const int64_t left = training_.end_step_ - training_.result_.steps;
    return {.step_s = last_step_s_,
            .step_s_avg = step_s,
            .data_s = last_data_s_,
            .data_s_avg = data_s_ / steps_done,
            .loss = totals.losses.back(),
            .loss_avg = loss_sum_ / steps_done,
            .acc1 = percent(totals.correct1, totals.images),
            .acc1_avg = percent(correct1_, images_),
            .acc5 = percent(totals.correct5, totals.images),
            .acc5_avg = percent(correct5_, images_),
            .images_per_s = static_cast<double>(totals.images) / window_s,
            .eta_s = step_s * static_cast<double>(left),
            .lr = training_.p_.config.lr};
  }

  int64_t images() const { return images_; }
  double seconds() const { return seconds_since(start_); }

 private:
  const Training& training_;
  Clock::time_point start_;
  Clock::time_point step_start_;
  double window_start_s_ = 0;
  double last_step_s_ = 0, last_data_s_ = 0, data_s_ = 0, data_s_before_ = 0;
  double loss_sum_ = 0;
  int64_t correct1_ = 0, correct5_ = 0, images_ = 0;
};

Training::Training(const Parts& parts)
    : p_(parts),
      reducer_(p_.ranks, p_.stream, p_.model.parameters(), p_.model.parameter_names()),
      optimizer_(p_.model.parameters(),
                 {.lr = static_cast<float>(p_.config.lr),
                  .momentum = static_cast<float>(p_.config.momentum),
                  .weight_decay = static_cast<float>(p_.config.weight_decay),
                  .nesterov = p_.config.nesterov}),
      normalization_(normalization(p_.config, *p_.data.train)),
      peers_(any_group_spans_ranks(p_.config.shards, p_.config.bn_groups, p_.config.ranks)
                 ? &p_.ranks
                 : nullptr),
      steps_per_epoch_(data::steps_per_epoch(batch_plan(p_))),
      end_step_(steps_per_epoch_ * p_.config.epochs) {
  if (p_.config.max_steps) end_step_ = std::min(end_step_, *p_.config.max_steps);
}

TrainingResult Training::run() {
  std::vector<Tensor> initial;
  for (const nn::StateEntry& entry : p_.model.state()) initial.push_back(entry.tensor);
  comm::broadcast_tensors(p_.ranks, initial);

  data::Loader loader(p_.data.train,
                      data::training_sequence(batch_plan(p_), 0, end_step_),
                      {.workers = static_cast<int>(p_.config.workers)});
  for (int epoch = 0; loader.left() > 0 && !result_.stopped; ++epoch) {
    Epoch progress(epoch, std::min(steps_per_epoch_, loader.left()), loader, *this);
    p_.console.tutorial(fmt::format("begin training of epoch {}/{}", epoch + 1, p_.config.epochs));
    while (progress.done < progress.steps && !progress.stop) train_step(progress);
    result_.stopped = progress.stop;
    result_.images += progress.images();
    result_.training_s += progress.seconds();
    end_epoch(epoch);
  }
  return result_;
}

void Training::train_step(Epoch& epoch) {
  epoch.begin_step();
  data::LoadedBatch batch = epoch.loader.next();
  batch.shards.peers = peers_;

  optimizer_.zero_grad();
  const Var images =
      nn::normalize_image(batch.images, nn::make_batch(p_.stream, batch.shards), normalization_);
  nn::CrossEntropy result =
      nn::softmax_cross_entropy(p_.model.forward(images),
                                batch.labels,
                                {.label_smoothing = static_cast<float>(p_.config.label_smoothing)});
  epoch.window.add(result);
  result.loss.backward();
  reducer_.finish();
  optimizer_.step(p_.stream);

  epoch.end_step();
  ++result_.steps;
  if (result_.steps == 1) result_.first_step_s = seconds_since_process_start();
  inject(p_.fault, p_.ranks.rank(), result_.steps, p_.model);

  constexpr int64_t kStopLatency = 10;  // steps until ranks agree to stop
  const int64_t interval = std::min(p_.config.print_freq, kStopLatency);
  const bool first = epoch.done == 1;  // main.py prints batch 0, then every print_freq-th
  if (first || epoch.done % interval == 0 || epoch.done == epoch.steps) compare_notes(epoch);
}

void Training::compare_notes(Epoch& epoch) {
  const WindowTotals totals = epoch.window.exchange(p_.ranks, stop_requested());
  epoch.stop = totals.stop;
  for (size_t i = 0; i < totals.losses.size(); ++i) {
    if (std::isfinite(totals.losses[i])) continue;
    const int64_t step = result_.steps - std::ssize(totals.losses) + static_cast<int64_t>(i) + 1;
    throw DivergedError(
        fmt::format("the loss is {} at step {} (epoch {})",
                    std::isnan(totals.losses[i]) ? "nan" : "infinite",
                    step,
                    epoch.number + 1),
        fmt::format("training diverged with --lr {:g}, or an input is not finite", p_.config.lr),
        "a smaller --lr");
  }
  const StepMetrics metrics = epoch.update(totals);
  const int64_t done = epoch.done;
  p_.console.progress_bar(
      progress_bar(epoch.number, static_cast<int>(p_.config.epochs), done, epoch.steps, metrics));
  if (done != 1 && done % p_.config.print_freq != 0 && done != epoch.steps) return;
  p_.console.progress_line(progress_line(epoch.number, done, epoch.steps, metrics));
  if (p_.directory == nullptr) return;
  p_.directory->append({{"split", "train"},
                        {"epoch", int64_t{epoch.number}},
                        {"step", result_.steps},
                        {"t", seconds_since_process_start()},
                        {"loss", metrics.loss},
                        {"loss_avg", metrics.loss_avg},
                        {"acc1", metrics.acc1},
                        {"acc5", metrics.acc5},
                        {"lr", metrics.lr},
                        {"img_s", metrics.images_per_s},
                        {"step_s", metrics.step_s_avg},
                        {"data_s", metrics.data_s_avg}});
}

// Rank 0's batch-norm statistics are the run's; weights must be equal already.
uint64_t Training::synchronize_replicas(int epoch) {
  std::vector<Tensor> buffers;
  for (const nn::StateEntry& entry : p_.model.state()) {
    if (!entry.is_parameter) buffers.push_back(entry.tensor);
  }
  comm::broadcast_tensors(p_.ranks, buffers);
  const uint64_t digest = state_digest(p_.model);
  const int differing = comm::first_differing_rank(p_.ranks, digest);
  if (differing < 0) return digest;
  throw DivergedError(
      fmt::format(
          "the weights of rank {} differ from rank 0's after epoch {}", differing, epoch + 1),
      "replicas must stay equal bit for bit: memory or a transfer was corrupted, or a rank "
      "computes "
      "differently",
      "run again; if the same rank differs again, leave its host out");
}

void Training::end_epoch(int epoch) {
  const uint64_t digest = synchronize_replicas(epoch);
  const bool last = result_.stopped || result_.steps == end_step_;
  if (p_.console.options().tutorial && !last) return;
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
                        {"digest", to_hex(digest)}});
}

}  // namespace lockstep::trainers
