#include "engine/evaluation/evaluate.h"

#include <array>
#include <bit>
#include <chrono>
#include <utility>
#include <vector>

#include "core/cuda/memory.h"
#include "core/cuda/stream.h"
#include "core/transfer.h"
#include "data/batch_plan.h"
#include "data/loader.h"
#include "engine/step/step_figures.h"
#include "engine/step/training_batches.h"
#include "engine/step/training_step.h"
#include "nn/functional.h"

namespace lockstep {
namespace {

Tensor queue_copy(Stream& stream, const Tensor& from, const Tensor& pinned) {
  Tensor to = pinned.slice(0, from.shape()[0]);
  transfer(stream, from, to);
  return to;
}

// A batch's losses (N) f32, target ranks (N) i32 and logits (N,C); with a loss of the caller's,
// losses (local shards) and no ranks. On CUDA they travel into
// page-locked memory after the kernels that make them, and the host need not wait before it queues
// the next batch. On the CPU they stay where they are.
class BatchResults {
 public:
  // Batches have at most `max_images` images. Errors: EnvironmentError when memory runs out.
  BatchResults(Stream& stream, int64_t max_images) {
    if (stream.device() != Device::kCuda) return;
    pinned_losses_ = cuda::empty_pinned({max_images}, Dtype::kF32);
    pinned_target_rank_ = cuda::empty_pinned({max_images}, Dtype::kI32);
    copied_.emplace();
  }

  // Queues the copies. Overwrites what was fetched before.
  void fetch(Stream& stream,
             const Tensor& losses,
             const Tensor& target_rank,
             const Tensor& logits) {
    if (!copied_) {
      losses_ = losses;
      target_rank_ = target_rank;
      logits_ = logits;
      return;
    }
    if (!pinned_logits_.defined()) {
      const int64_t images = pinned_losses_.shape()[0];
      pinned_logits_ = cuda::empty_pinned({images, logits.shape().stride0()}, logits.dtype());
    }
    logits_ = queue_copy(stream, logits, pinned_logits_);
    losses_ = queue_copy(stream, losses, pinned_losses_);
    if (target_rank.defined()) {
      target_rank_ = queue_copy(stream, target_rank, pinned_target_rank_);
    }
    copied_->record(stream.cuda());
  }
  // Waits for the results. Errors: CudaError.
  void wait() const {
    if (copied_ && !copied_->done()) copied_->synchronize();
  }

  const Tensor& losses() const { return losses_; }
  const Tensor& target_rank() const { return target_rank_; }
  const Tensor& logits() const { return logits_; }

 private:
  Tensor pinned_losses_, pinned_target_rank_, pinned_logits_;
  Tensor losses_, target_rank_, logits_;
  std::optional<cuda::Event> copied_;  // on CUDA
};

class EvaluationMode {
 public:
  explicit EvaluationMode(nn::Module& model) {
    model.apply([&](nn::Module& module) { before_.emplace_back(&module, module.training()); });
    model.train(false);
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;
  // Restores from the outside in, because setting a module's mode sets that of all modules in it.
  ~EvaluationMode() {
    for (const auto& [module, training] : before_) module->train(training);
  }

 private:
  std::vector<std::pair<nn::Module*, bool>> before_;
};

// Whether a batch is left and no rank was asked to stop. A collective call: if one rank stopped by
// itself, it would wait for the others until the deadline.
bool goes_on(const EvaluationTask& task, const data::Loader& loader, Communicator& ranks) {
  const bool asked = task.stop && task.stop();
  std::array<int64_t, 2> left_and_asked = {loader.left(), asked ? 1 : 0};
  ranks.all_reduce_sum(std::span<int64_t>(left_and_asked));
  return left_and_asked[0] > 0 && left_and_asked[1] == 0;
}

// Counts and the sum of losses over some images.
struct Counts {
  HitCounts hits;
  double loss = 0;

  Counts& operator+=(const Counts& other) {
    hits += other.hits;
    loss += other.loss;
    return *this;
  }
};

// A batch whose work is queued on the device.
struct QueuedBatch {
  BatchResults results;
  int64_t number = 0;
  Shards shards = {};
  Tensor labels = {}, indices = {};  // on the host
};

Counts count_chunk(const QueuedBatch& batch, int64_t k) {
  const BatchResults& results = batch.results;
  Counts counts;
  if (!results.target_rank().defined()) {
    counts.hits.images = batch.shards.count(k);
    counts.loss = results.losses().data<float>()[k];
    return counts;
  }
  for (int64_t row = batch.shards.begin(k); row < batch.shards.begin(k + 1); ++row) {
    counts.loss += results.losses().data<float>()[row];
    counts.hits.add(results.target_rank().data<int32_t>()[row]);
  }
  return counts;
}

// `chunk_losses` holds bits of doubles: a cell is written by one rank and zero on the others, so an
// integer sum carries them exactly.
Evaluation over_ranks(const Counts& mine, std::vector<int64_t> chunk_losses, Communicator& ranks) {
  std::array<int64_t, 3> counts = {mine.hits.correct1, mine.hits.correct5, mine.hits.images};
  ranks.all_reduce_sum(std::span<int64_t>(counts));
  ranks.all_reduce_sum(std::span<int64_t>(chunk_losses));
  Evaluation total{.correct1 = counts[0], .correct5 = counts[1], .total = counts[2]};
  for (const int64_t bits : chunk_losses) total.loss += std::bit_cast<double>(bits);
  total.loss /= static_cast<double>(total.total);
  return total;
}

// Settles batches in their order. A GPU already has the next batch when one is settled, so it never
// waits for the host.
class BatchQueue {
 public:
  using Settle = std::function<void(const QueuedBatch& batch)>;

  BatchQueue(Stream& stream, int64_t max_images, Settle settle)
      : places_{QueuedBatch{BatchResults(stream, max_images)},
                QueuedBatch{BatchResults(stream, max_images)}},
        ahead_(stream.device() == Device::kCuda ? 1 : 0),
        settle_(std::move(settle)) {}

  // Returns the place of the next batch. Call go_on() when its work is queued.
  QueuedBatch& next() { return places_[queued_++ % 2]; }
  void go_on() { settle_all_but(ahead_); }
  void finish() { settle_all_but(0); }

 private:
  void settle_all_but(size_t count) {
    while (queued_ - settled_ > count) settle_(places_[settled_++ % 2]);
  }

  std::array<QueuedBatch, 2> places_;
  const size_t ahead_;
  const Settle settle_;
  size_t queued_ = 0, settled_ = 0;
};

// Also writes the losses of the batch's chunks, as over_ranks() takes them.
Counts count_chunks(const EvaluationTask& task,
                    const data::EvaluationPlan& plan,
                    const QueuedBatch& batch,
                    std::vector<int64_t>& chunk_losses) {
  Counts of_batch;
  for (int64_t k = 0; k < batch.shards.local(); ++k) {
    const Counts of_chunk = count_chunk(batch, k);
    const int64_t chunk = data::chunk_of(plan, batch.number, k);
    const double divisor = task.loss.div_batch ? static_cast<double>(of_chunk.hits.images) : 1;
    chunk_losses[static_cast<size_t>(chunk)] = std::bit_cast<int64_t>(of_chunk.loss / divisor);
    of_batch += of_chunk;
  }
  return of_batch;
}

// Times batches and averages their figures, as main.py's meters do.
class Meter {
 public:
  TestMetrics update(const Counts& batch, const Counts& all) {
    const double total_s = std::chrono::duration<double>(Clock::now() - start_).count();
    const double batch_s = total_s - before_s_;
    before_s_ = total_s;
    ++batches_;
    const auto mean = [](double sum, const Counts& counts) {
      return sum / static_cast<double>(counts.hits.images);
    };
    const auto percent = [&](int64_t correct, const Counts& counts) {
      return 100 * mean(static_cast<double>(correct), counts);
    };
    return {.batch_s = batch_s,
            .batch_s_avg = total_s / static_cast<double>(batches_),
            .images = static_cast<double>(batch.hits.images),
            .images_avg = static_cast<double>(all.hits.images) / static_cast<double>(batches_),
            .loss = mean(batch.loss, batch),
            .loss_avg = mean(all.loss, all),
            .acc1 = percent(batch.hits.correct1, batch),
            .acc1_avg = percent(all.hits.correct1, all),
            .acc5 = percent(batch.hits.correct5, batch),
            .acc5_avg = percent(all.hits.correct5, all)};
  }

 private:
  using Clock = std::chrono::steady_clock;

  const Clock::time_point start_ = Clock::now();
  double before_s_ = 0;
  int64_t batches_ = 0;
};

void queue_results(const EvaluationTask& task,
                   const Var& logits,
                   const Tensor& labels,
                   BatchResults& results) {
  if (task.loss.own) {
    const Var losses = own_loss(task.loss.own, logits, labels);
    return results.fetch(logits.stream(), losses.value(), {}, logits.value());
  }
  const nn::CrossEntropy figures = nn::softmax_cross_entropy(logits, labels);
  results.fetch(logits.stream(), figures.losses, figures.target_rank, logits.value());
}

}  // namespace

std::optional<Evaluation> evaluate(const EvaluationTask& task,
                                   Stream& stream,
                                   Communicator& ranks) {
  const EvaluationMode mode(task.model);
  const data::EvaluationPlan plan{.dataset_size = task.dataset->size(),
                                  .chunk_images = task.chunk_images,
                                  .chunks_at_once = stream.threads(),
                                  .rank = ranks.rank(),
                                  .ranks = ranks.size()};
  data::Loader loader(
      task.dataset, data::evaluation_sequence(plan), {.workers = static_cast<int>(task.workers)});
  SkippedPhotos of_this(task.dataset->size(), task.warn);
  SkippedPhotos& skipped = task.skipped == nullptr ? of_this : *task.skipped;
  const int64_t max_images = task.chunk_images * stream.threads();
  DeviceBatches on_device(stream, *task.dataset, max_images);
  const int64_t batches = loader.left();
  Counts sums;
  Meter meter;
  std::vector<int64_t> chunk_losses(static_cast<size_t>(data::chunk_count(plan)), 0);

  BatchQueue queue(stream, max_images, [&](const QueuedBatch& batch) {
    batch.results.wait();
    const Counts of_batch = count_chunks(task, plan, batch, chunk_losses);
    sums += of_batch;
    if (task.observer != nullptr) {
      const Tensor losses = task.loss.own ? Tensor() : batch.results.losses();
      task.observer->add({batch.results.logits(), batch.labels, batch.indices, losses});
    }
    if (task.on_batch) task.on_batch(batch.number, batches, meter.update(of_batch, sums));
  });

  while (goes_on(task, loader, ranks)) {
    if (loader.left() == 0) continue;
    QueuedBatch& next = queue.next();
    data::LoadedBatch loaded = loader.next();
    next.labels = loaded.labels;
    next.indices = loaded.indices;
    if (task.loss.own) loaded.shards.step_images = 1;
    const data::LoadedBatch batch = on_device.upload(std::move(loaded));
    skipped.note(batch.skipped);
    const auto of_batch = nn::make_batch(stream, batch.shards, false, task.precision);
    const Var logits =
        forward_views(task.model, task.input, {batch.images, batch.indices, of_batch});
    queue_results(task, logits, batch.labels, next.results);
    next.number = batch.number;
    next.shards = batch.shards;
    queue.go_on();
  }
  queue.finish();

  std::array<int64_t, 2> left_and_skipped = {loader.left(), skipped.noted()};
  ranks.all_reduce_sum(std::span<int64_t>(left_and_skipped));
  if (left_and_skipped[1] > 0) skipped.agree(ranks);
  const Evaluation evaluation = over_ranks(sums, chunk_losses, ranks);
  const bool is_whole = left_and_skipped[0] == 0;
  if (task.observer != nullptr) task.observer->settle(is_whole ? &plan : nullptr, ranks);
  return is_whole ? std::optional(evaluation) : std::nullopt;
}

}  // namespace lockstep
