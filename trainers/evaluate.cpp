#include "trainers/evaluate.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "nn/functional.h"

namespace lockstep::trainers {
namespace {

// A few whole chunks, one a shard, so that each stays on one thread.
struct Chunks {
  Shards shards;
  Tensor images;  // u8 (N,C,H,W)
  Tensor labels;  // i32 (N)
};

Chunks read_chunks(const data::Dataset& dataset,
                   const std::vector<int64_t>& chunks,
                   int64_t chunk_images,
                   Stream& stream) {
  Chunks batch;
  batch.shards.offsets = {0};
  for (const int64_t chunk : chunks) {
    const int64_t first = chunk * chunk_images;
    const int64_t count = std::min(chunk_images, dataset.size() - first);
    batch.shards.offsets.push_back(batch.shards.images() + count);
  }
  batch.shards.total = batch.shards.groups = batch.shards.local();
  batch.shards.step_images = batch.shards.images();

  const Shape image = dataset.image_shape();
  const int64_t n = batch.shards.images();
  batch.images = Tensor::empty({n, image[0], image[1], image[2]}, Dtype::kU8);
  batch.labels = Tensor::empty({n}, Dtype::kI32);
  stream.fork(batch.shards.local(), [&](int64_t k, int) {
    for (int64_t row = batch.shards.begin(k); row < batch.shards.begin(k + 1); ++row) {
      const int64_t sample =
          chunks[static_cast<size_t>(k)] * chunk_images + row - batch.shards.begin(k);
      uint8_t* pixels = batch.images.data<uint8_t>() + row * image.numel();
      dataset.read(sample, {pixels, static_cast<size_t>(image.numel())});
      batch.labels.data<int32_t>()[row] = dataset.label(sample);
    }
  });
  return batch;
}

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

Evaluation evaluate(nn::Module& model,
                    const data::Dataset& dataset,
                    int64_t chunk_images,
                    Stream& stream,
                    Communicator& ranks) {
  const EvaluationMode mode(model);
  const int64_t chunk_count = (dataset.size() + chunk_images - 1) / chunk_images;
  // A cell is written by one rank and zero on the others: an integer sum carries f64 bits exactly.
  std::vector<int64_t> cells(static_cast<size_t>(chunk_count) + 2, 0);

  for (int64_t next = ranks.rank(); next < chunk_count;) {
    std::vector<int64_t> chunks;
    for (; next < chunk_count && std::ssize(chunks) < stream.threads(); next += ranks.size()) {
      chunks.push_back(next);
    }
    const Chunks batch = read_chunks(dataset, chunks, chunk_images, stream);
    const Var x = nn::normalize_image(batch.images, nn::make_batch(stream, batch.shards, false));
    const nn::CrossEntropy result = nn::softmax_cross_entropy(model.forward(x), batch.labels);
    for (int64_t k = 0; k < batch.shards.local(); ++k) {
      double loss = 0;
      for (int64_t row = batch.shards.begin(k); row < batch.shards.begin(k + 1); ++row) {
        loss += result.losses.data<float>()[row];
        const int32_t rank = result.target_rank.data<int32_t>()[row];
        cells[0] += rank < 1 ? 1 : 0;
        cells[1] += rank < 5 ? 1 : 0;
      }
      cells[static_cast<size_t>(chunks[static_cast<size_t>(k)]) + 2] = std::bit_cast<int64_t>(loss);
    }
  }
  ranks.all_reduce_sum(std::span(cells));

  Evaluation total{.correct1 = cells[0], .correct5 = cells[1], .total = dataset.size()};
  for (size_t i = 2; i < cells.size(); ++i) total.loss += std::bit_cast<double>(cells[i]);
  total.loss /= static_cast<double>(total.total);
  return total;
}

}  // namespace lockstep::trainers
