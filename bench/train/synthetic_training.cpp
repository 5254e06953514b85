#include "bench/train/synthetic_training.h"

#include <chrono>
#include <memory>

#include "core/transfer.h"
#include "data/batch_plan.h"
#include "data/synthetic.h"
#include "nn/functional.h"
#include "trainers/loop/training_parts.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

comm::ReducerOptions reducer_options(const SyntheticTraining::Parts& parts) {
  comm::ReducerOptions options =
      reducer_options(parts.run.request.exchange, parts.run.batch.micro_steps);
  options.on_device = parts.exchange;
  return options;
}

Tensor on_device(Stream& stream, const Tensor& tensor) {
  if (stream.device() == Device::kCpu) return tensor;
  Tensor sent = Tensor::empty(tensor.shape(), tensor.dtype(), stream.device());
  transfer(stream, tensor, sent);
  return sent;
}

}  // namespace

SyntheticTraining::SyntheticTraining(const Parts& parts)
    : ranks_(parts.ranks),
      stream_(parts.stream),
      model_(parts.model),
      precision_(parts.run.request.precision.network()),
      batch_norm_peers_(ranks_),
      reducer_(
          ranks_, stream_, model_.parameters(), model_.parameter_names(), reducer_options(parts)),
      update_(
          parts.run.request, parts.run.batch.images, stream_, model_, 1),  // the rate is constant
      graph_(stream_, parts.run.runs_as_graph()) {
  const BatchDivision& cut = parts.run.batch;
  if (any_group_spans_ranks(cut.shards, cut.bn_groups, cut.ranks)) {
    peers_ = {&batch_norm_peers_, reducer_.device_peers()};
  }
  if (parts.input_steps > 0) {
    constexpr int64_t kBatches = 4;  // of an epoch
    const data::DatasetPair data = {.train = std::make_shared<data::Synthetic>(
                                        data::Synthetic::Options{.images = kBatches * cut.images,
                                                                 .classes = parts.network.classes,
                                                                 .shape = parts.network.image}),
                                    .test = {}};
    const StepRange steps{.per_epoch = kBatches, .end = parts.input_steps};
    loader_.emplace(
        trainers::step_inputs(parts.run, data, ranks_, stream_, model_), steps, nullptr);
  } else {
    batch_ = make_batch(parts);
  }
  update_.weights_were_written();
}

SyntheticTraining::Batch SyntheticTraining::make_batch(const Parts& parts) {
  const BatchDivision& cut = parts.run.batch;
  const data::Synthetic dataset(
      {.images = cut.images, .classes = parts.network.classes, .shape = parts.network.image});
  const data::MicroBatch mine =
      data::EpochPlan(batch_plan(cut, parts.run.request.seeds.order, dataset, parts.ranks), 0)
          .micro_batch(0, 0);
  const auto [channels, height, width] = parts.network.image;
  const auto count = std::ssize(mine.images);
  Tensor images = Tensor::empty({count, channels, height, width}, Dtype::kU8);
  Tensor labels = Tensor::empty({count}, Dtype::kI32);
  Tensor numbers = Tensor::empty({count}, Dtype::kI64);
  const int64_t pixels = parts.network.image.numel();
  for (int64_t k = 0; k < count; ++k) {
    const int64_t image = mine.images[static_cast<size_t>(k)];
    dataset.read(image,
                 images.span<uint8_t>().subspan(static_cast<size_t>(k * pixels),
                                                static_cast<size_t>(pixels)));
    labels.data<int32_t>()[k] = dataset.label(image);
    numbers.data<int64_t>()[k] = image;
  }
  return {.images = on_device(parts.stream, images),
          .labels = on_device(parts.stream, labels),
          .numbers = on_device(parts.stream, numbers),
          .shards = mine.shards,
          .listener = parts.listener};
}

TrainingBatches::MicroStep SyntheticTraining::next_batch() {
  if (loader_) {
    return loader_->next(peers_, [](const Shards&) -> TapeListener* { return nullptr; });
  }
  Shards shards = batch_.shards;
  shards.peers = peers_.on_host;
  shards.device_peers = peers_.on_device;
  const auto of_tape = nn::make_batch(
      stream_, shards, true, precision_, batch_.listener, {.images = batch_.numbers});
  return {.images = nn::normalize_image(batch_.images, of_tape), .labels = batch_.labels};
}

void SyntheticTraining::step() {
  const Clock::time_point start = Clock::now();
  const double batch_norm_s = batch_norm_peers_.seconds();
  const TrainingBatches::MicroStep batch = next_batch();
  const auto forward_backward = [&](const Var& images, const Tensor& labels, const Tensor&) {
    update_.optimizer().zero_grad();
    nn::CrossEntropy result = nn::softmax_cross_entropy(model_.forward(images), labels);
    result.loss.backward(update_.seed(images.shards().local()));
    reducer_.finish();
    update_.step(0);
    return result;
  };
  window_.add(graph_.run(batch.images, batch.labels, {}, forward_backward));
  RankSeconds seconds{.exposed = batch_norm_peers_.seconds() - batch_norm_s};
  if (graph_.repeated()) {
    model_.count_step();
  } else {
    seconds.exposed += reducer_.times().exposed_s;
    seconds.hidden = reducer_.times().hidden_s;
  }
  seconds.own = seconds_since(start) - seconds.exposed;
  window_.end_step(seconds);
}

}  // namespace lockstep::bench
