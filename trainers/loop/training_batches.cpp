#include "trainers/loop/training_batches.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "core/cuda/memory.h"
#include "core/philox.h"
#include "core/transfer.h"
#include "kernels/elementwise/fill.h"
#include "kernels/image/mix_images.h"
#include "trainers/config/normalization.h"
#include "trainers/loop/training_data.h"

namespace lockstep::trainers {
namespace {

// Memory for a tensor of the largest batch, page-locked on the host and on the device.
class Twin {
 public:
  Twin(const Shape& shape, Dtype dtype)
      : pinned_(cuda::empty_pinned(shape, dtype)),
        on_device_(Tensor::empty(shape, dtype, Device::kCuda)) {}

  // Queues the copy of `from`, whose memory may be used again at once.
  Tensor send(Stream& stream, const Tensor& from) {
    Tensor staged = pinned_.slice(0, from.shape()[0]);
    std::memcpy(staged.bytes(), from.bytes(), from.nbytes());
    Tensor sent = on_device_.slice(0, from.shape()[0]);
    transfer(stream, staged, sent);
    return sent;
  }

 private:
  Tensor pinned_;
  Tensor on_device_;
};

}  // namespace

class DeviceBatches::Buffer {
 public:
  Buffer(const data::ImageShape& image, int64_t max_images)
      : images_({max_images, image.channels, image.height, image.width}, Dtype::kU8),
        labels_({max_images}, Dtype::kI32),
        indices_({max_images}, Dtype::kI64),
        numbers_({max_images}, Dtype::kI64) {}

  // Kernels that read it have been queued.
  void note_used(Stream& compute) { used_.record(compute.cuda()); }

  void send(Stream& copies, Stream& compute, data::LoadedBatch& batch) {
    if (!sent_.done()) sent_.synchronize();  // its page-locked half is read until then
    used_.make_wait(copies.cuda());
    batch.images = images_.send(copies, batch.images);
    batch.labels = labels_.send(copies, batch.labels);
    batch.indices = indices_.send(copies, batch.indices);
    batch.numbers = numbers_.send(copies, batch.numbers);
    sent_.record(copies.cuda());
    sent_.make_wait(compute.cuda());
  }

 private:
  Twin images_, labels_, indices_, numbers_;
  cuda::Event sent_, used_;
};

DeviceBatches::DeviceBatches(Stream& stream, const data::ImageShape& image, int64_t max_images)
    : stream_(stream) {
  if (stream.device() != Device::kCuda) return;
  copies_ = std::make_unique<Stream>(Device::kCuda);
  for (auto& buffer : buffers_) {
    buffer = std::make_unique<Buffer>(image, max_images);
    buffer->note_used(stream);  // its memory may have been another tensor's
  }
}

DeviceBatches::~DeviceBatches() = default;

data::LoadedBatch DeviceBatches::upload(data::LoadedBatch batch) {
  if (!copies_) return batch;
  if (uploads_ > 0) buffers_[(uploads_ - 1) % 2]->note_used(stream_);
  buffers_[uploads_++ % 2]->send(*copies_, stream_, batch);
  return batch;
}

namespace {

// Draws from (0, 1), so that the number has a logarithm.
double uniform(PhiloxStream& numbers) {
  return (numbers.next() + 0.5) * 0x1p-32;
}

double normal(PhiloxStream& numbers) {
  const double radius = std::sqrt(-2 * std::log(uniform(numbers)));
  return radius * std::cos(2 * std::numbers::pi * uniform(numbers));
}

// The logarithm of a variate of Gamma(shape): for small shapes the variate itself may be 0.
// Source: Marsaglia and Tsang 2000, "A simple method for generating gamma variables".
double log_gamma_variate(double shape, PhiloxStream& numbers) {
  if (shape < 1) {
    const double of_next = log_gamma_variate(shape + 1, numbers);
    return of_next + std::log(uniform(numbers)) / shape;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(numbers);
    const double v = 1 + c * x;
    const double u = uniform(numbers);
    if (v <= 0) continue;
    const double log_v = 3 * std::log(v);
    if (std::log(u) < x * x / 2 + d * (1 - v * v * v + log_v)) return std::log(d) + log_v;
  }
}

}  // namespace

float draw_mix(double alpha, uint64_t seed, int64_t epoch, int64_t batch) {
  PhiloxStream numbers(
      seed, RandomPurpose::kMixup, static_cast<uint32_t>(epoch), static_cast<uint64_t>(batch));
  const double one = log_gamma_variate(alpha, numbers);
  const double other = log_gamma_variate(alpha, numbers);
  return static_cast<float>(1 / (1 + std::exp(other - one)));
}

data::BatchPlan batch_plan(const ResolvedRun& run,
                           const data::Dataset& dataset,
                           const Communicator& ranks) {
  return {.dataset_size = dataset.size(),
          .global_batch = run.batch.images,
          .micro_steps = run.batch.micro_steps,
          .shards = run.batch.shards,
          .groups = run.batch.bn_groups,
          .rank = ranks.rank(),
          .ranks = ranks.size(),
          .seed = run.request.seeds.order,
          .drop_last = run.batch.drop_last};
}

namespace {

int64_t largest_batch(const data::BatchPlan& plan) {
  return data::training_sequence(plan, 0, 1).max_images;
}

}  // namespace

TrainingBatches::TrainingBatches(const ResolvedRun& run,
                                 const std::shared_ptr<const data::Dataset>& dataset,
                                 const Communicator& ranks,
                                 Stream& stream,
                                 const StepRange& range,
                                 Timeline* timeline)
    : stream_(stream),
      timeline_(timeline),
      augmentation_(augmentation(run.request.augmentation, run.request.seeds.run, *dataset)),
      normalization_(normalization(run.request.normalize, *dataset)),
      precision_(run.request.precision.network()),
      mixup_(run.request.augmentation.mixup),
      seed_(run.request.seeds.run),
      first_batch_(range.first * run.batch.micro_steps),
      loader_(dataset,
              data::training_sequence(batch_plan(run, *dataset, ranks), range.first, range.end),
              {.workers = static_cast<int>(run.request.workers),
               .ahead =
                   std::max<int64_t>(4, run.request.workers + 2),  // none waits for another's batch
               .augmentation = device_augments() ? Augmentation{} : augmentation_,
               .timeline = timeline}),
      on_device_(stream, dataset->image_shape(), largest_batch(batch_plan(run, *dataset, ranks))) {}

bool TrainingBatches::device_augments() const {
  return stream_.device() != Device::kCpu && augmentation_.changes_images() &&
         !augmentation_.resized_crop;
}

TrainingBatches::MicroStep TrainingBatches::next(
    const GroupPeers& peers, FunctionRef<TapeListener*(const Shards& shards)> listener) {
  data::LoadedBatch batch = loader_.next();
  const TimelineSpan span(timeline_, "prepare images");
  batch = on_device_.upload(std::move(batch));
  batch.shards.peers = peers.on_host;
  batch.shards.device_peers = peers.on_device;
  const auto of_tape = nn::make_batch(stream_,
                                      batch.shards,
                                      true,
                                      precision_,
                                      listener(batch.shards),
                                      {.seed = seed_, .images = batch.numbers});
  MicroStep step{.labels = batch.labels, .skipped = std::move(batch.skipped)};
  if (device_augments()) {
    step.images = nn::crop_flip_normalize(
        batch.images,
        batch.indices,
        of_tape,
        {.augmentation = augmentation_, .epoch = batch.epoch, .normalize = normalization_});
  } else {
    step.images = nn::normalize_image(batch.images, of_tape, normalization_);
  }
  if (mixup_ > 0) step.mix = mix(batch, step.images.value());
  return step;
}

Tensor TrainingBatches::mix(const data::LoadedBatch& batch, Tensor images) {
  Tensor weight = Tensor::empty({1}, Dtype::kF32, stream_.device());
  kernels::fill(stream_, draw_mix(mixup_, seed_, batch.epoch, first_batch_ + batch.number), weight);
  kernels::mix_images(stream_, batch.shards, weight, images);
  return weight;
}

}  // namespace lockstep::trainers
