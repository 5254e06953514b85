#include "bench/train/synthetic_training.h"

#include <chrono>

#include "data/batch_plan.h"
#include "data/synthetic.h"
#include "nn/functional.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

SyntheticTraining::SyntheticTraining(const trainers::ResolvedRun& run,
                                     const trainers::ModelOptions& network,
                                     Communicator& ranks,
                                     Stream& stream,
                                     nn::Module& model)
    : ranks_(ranks),
      stream_(stream),
      model_(model),
      batch_norm_peers_(ranks),
      batch_(make_batch(run.batch, network, ranks.rank())),
      precision_(run.request.precision.network()),
      stored_(run.request.precision, model.named_parameters()),
      reducer_(ranks,
               stream,
               model.parameters(),
               model.parameter_names(),
               trainers::reducer_options(run.request.exchange, run.batch.micro_steps)),
      optimizer_(model.named_parameters(), {.lr = 0.01F, .momentum = 0.9F, .weight_decay = 1e-4F}) {
  if (any_group_spans_ranks(run.batch.shards, run.batch.bn_groups, run.batch.ranks)) {
    batch_.shards.peers = &batch_norm_peers_;
  }
  stored_.refresh(stream);
}

SyntheticTraining::Batch SyntheticTraining::make_batch(const trainers::BatchDivision& cut,
                                                       const trainers::ModelOptions& network,
                                                       int rank) {
  const data::Synthetic dataset(
      {.images = cut.images, .classes = network.classes, .shape = network.image});
  const data::EpochPlan plan({.dataset_size = cut.images,
                              .global_batch = cut.images,
                              .shards = cut.shards,
                              .groups = cut.bn_groups,
                              .rank = rank,
                              .ranks = cut.ranks},
                             0);
  const data::MicroBatch mine = plan.micro_batch(0, 0);
  const auto [channels, height, width] = network.image;
  const auto count = std::ssize(mine.images);
  Batch batch{.images = Tensor::empty({count, channels, height, width}, Dtype::kU8),
              .labels = Tensor::empty({count}, Dtype::kI32),
              .shards = mine.shards};
  const int64_t pixels = network.image.numel();
  for (int64_t k = 0; k < count; ++k) {
    const int64_t image = mine.images[static_cast<size_t>(k)];
    dataset.read(image,
                 batch.images.span<uint8_t>().subspan(static_cast<size_t>(k * pixels),
                                                      static_cast<size_t>(pixels)));
    batch.labels.data<int32_t>()[k] = dataset.label(image);
  }
  return batch;
}

double SyntheticTraining::step() {
  const Clock::time_point start = Clock::now();
  const double batch_norm_s = batch_norm_peers_.seconds();
  optimizer_.zero_grad();
  const Var images =
      nn::normalize_image(batch_.images, nn::make_batch(stream_, batch_.shards, true, precision_));
  nn::CrossEntropy result = nn::softmax_cross_entropy(model_.forward(images), batch_.labels);
  window_.add(result);
  result.loss.backward();
  reducer_.finish();
  const double exposed_s = reducer_.times().exposed_s + batch_norm_peers_.seconds() - batch_norm_s;
  window_.end_step({.own = seconds_since(start) - exposed_s,
                    .exposed = exposed_s,
                    .hidden = reducer_.times().hidden_s});
  optimizer_.step(stream_);
  stored_.round(stream_);
  return seconds_since(start);
}

}  // namespace lockstep::bench
