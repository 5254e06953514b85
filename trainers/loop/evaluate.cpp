#include "trainers/loop/evaluate.h"

#include <array>
#include <bit>
#include <vector>

#include "data/batch_plan.h"
#include "data/loader.h"
#include "nn/functional.h"

namespace lockstep::trainers {
namespace {

class EvaluationMode {
 public:
  explicit EvaluationMode(nn::Module& model) : model_(model), was_training_(model.training()) {
    model_.train(false);
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;
  ~EvaluationMode() { model_.train(was_training_); }

 private:
  nn::Module& model_;
  bool was_training_;
};

}  // namespace

Evaluation evaluate(const EvaluationTask& task, Stream& stream, Communicator& ranks) {
  const EvaluationMode mode(task.model);
  const data::EvaluationPlan plan{.dataset_size = task.dataset->size(),
                                  .chunk_images = task.chunk_images,
                                  .chunks_at_once = stream.threads(),
                                  .rank = ranks.rank(),
                                  .ranks = ranks.size()};
  data::Loader loader(
      task.dataset, data::evaluation_sequence(plan), {.workers = static_cast<int>(task.workers)});
  Evaluation sums;
  // A cell is written by one rank and zero on the others: an integer sum carries f64 bits exactly.
  std::vector<int64_t> chunk_losses(static_cast<size_t>(data::chunk_count(plan)), 0);

  while (loader.left() > 0) {
    const data::LoadedBatch batch = loader.next();
    const Shards& shards = batch.shards;
    const Var x = nn::normalize_image(
        batch.images, nn::make_batch(stream, shards, false), task.normalization);
    const nn::CrossEntropy result = nn::softmax_cross_entropy(task.model.forward(x), batch.labels);
    for (int64_t k = 0; k < shards.local(); ++k) {
      double loss = 0;
      for (int64_t row = shards.begin(k); row < shards.begin(k + 1); ++row) {
        loss += result.losses.data<float>()[row];
        const int32_t rank = result.target_rank.data<int32_t>()[row];
        sums.correct1 += rank < 1 ? 1 : 0;
        sums.correct5 += rank < 5 ? 1 : 0;
      }
      const int64_t chunk = data::chunk_of(plan, batch.number, k);
      chunk_losses[static_cast<size_t>(chunk)] = std::bit_cast<int64_t>(loss);
    }
    sums.total += shards.images();
  }

  std::array<int64_t, 3> counts = {sums.correct1, sums.correct5, sums.total};
  ranks.all_reduce_sum(std::span<int64_t>(counts));
  ranks.all_reduce_sum(std::span<int64_t>(chunk_losses));
  Evaluation total{.correct1 = counts[0], .correct5 = counts[1], .total = counts[2]};
  for (const int64_t bits : chunk_losses) total.loss += std::bit_cast<double>(bits);
  total.loss /= static_cast<double>(total.total);
  return total;
}

}  // namespace lockstep::trainers
