#include "engine/step/training_batches.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/cuda/memory.h"
#include "core/transfer.h"
#include "data/random_erasing.h"
#include "engine/step/draw_mix.h"
#include "kernels/elementwise/fill.h"
#include "kernels/image/erase_boxes.h"
#include "kernels/image/mix_images.h"

namespace lockstep {
namespace {

// Memory for a tensor of the largest batch, page-locked on the host and on the device.
class StagedTensor {
 public:
  StagedTensor(const Shape& shape, Dtype dtype)
      : pinned_(cuda::empty_pinned({shape.numel()}, dtype)),
        on_device_(Tensor::empty({shape.numel()}, dtype, Device::kCuda)) {}

  // Queues the copy of `from`, whose memory may be used again at once.
  Tensor send(Stream& stream, const Tensor& from) {
    Tensor staged = pinned_.slice(0, from.numel()).view(from.shape());
    std::memcpy(staged.bytes(), from.bytes(), from.nbytes());
    Tensor sent = on_device_.slice(0, from.numel()).view(from.shape());
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
  Buffer(const data::Dataset& dataset, int64_t max_images, bool has_boxes)
      : images_({max_images, dataset.image_shape().numel()}, dataset.dtype()),
        labels_({max_images, std::max<int64_t>(1, dataset.target_size())},
                dataset.target_size() == 0 ? Dtype::kI32 : Dtype::kF32),
        indices_({max_images}, Dtype::kI64),
        numbers_({max_images}, Dtype::kI64) {
    if (has_boxes) boxes_.emplace(Shape{max_images, 4}, Dtype::kI32);
  }

  // Kernels that read it have been queued.
  void note_used(Stream& compute) { used_.record(compute.cuda()); }

  void send(Stream& copies, Stream& compute, data::LoadedBatch& batch) {
    if (!sent_.done()) sent_.synchronize();  // its page-locked memory is read until then
    used_.make_wait(copies.cuda());
    batch.images = images_.send(copies, batch.images);
    batch.labels = labels_.send(copies, batch.labels);
    batch.indices = indices_.send(copies, batch.indices);
    batch.numbers = numbers_.send(copies, batch.numbers);
    if (boxes_) batch.boxes = boxes_->send(copies, batch.boxes);
    sent_.record(copies.cuda());
    sent_.make_wait(compute.cuda());
  }

 private:
  StagedTensor images_, labels_, indices_, numbers_;
  std::optional<StagedTensor> boxes_;
  cuda::Event sent_, used_;
};

DeviceBatches::DeviceBatches(Stream& stream,
                             const data::Dataset& dataset,
                             int64_t max_images,
                             bool has_boxes)
    : stream_(stream) {
  if (stream.device() != Device::kCuda) return;
  copies_ = std::make_unique<Stream>(Device::kCuda);
  for (auto& buffer : buffers_) {
    buffer = std::make_unique<Buffer>(dataset, max_images, has_boxes);
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

Var samples_on_tape(const Tensor& samples, const std::shared_ptr<const Batch>& batch) {
  const Shape& shape = samples.shape();
  const bool is_flat = shape[2] == 1 && shape[3] == 1;
  const Var root(is_flat ? samples.view({shape[0], shape[1]}) : samples, batch);
  return nn::cast(root, batch->precision.images);
}

data::BatchPlan batch_plan(const BatchDivision& batch,
                           uint64_t order_seed,
                           const data::Dataset& dataset,
                           const Communicator& ranks) {
  return {.dataset_size = dataset.size(),
          .global_batch = batch.images,
          .micro_steps = batch.micro_steps,
          .shards = batch.shards,
          .groups = batch.bn_groups,
          .rank = ranks.rank(),
          .ranks = ranks.size(),
          .seed = order_seed,
          .drop_last = batch.drop_last,
          .repeats = batch.repeats};
}

namespace {

data::BatchPlan plan_of(const StepInputs& inputs) {
  return batch_plan(inputs.batch, inputs.settings.seeds.order, *inputs.data.train, inputs.ranks);
}

int64_t largest_batch(const data::BatchPlan& plan) {
  return data::training_sequence(plan, 0, 1).max_images;
}

}  // namespace

TrainingBatches::TrainingBatches(const StepInputs& inputs,
                                 const StepRange& range,
                                 Timeline* timeline)
    : stream_(inputs.stream),
      timeline_(timeline),
      changes_(inputs.changes),
      precision_(inputs.settings.precision.network()),
      max_images_(largest_batch(plan_of(inputs))),
      seed_(inputs.settings.seeds.run),
      first_batch_(range.first * inputs.batch.micro_steps),
      loader_(inputs.data.train,
              data::training_sequence(plan_of(inputs), range.first, range.end),
              {.workers = static_cast<int>(inputs.settings.workers),
               // None waits for another's batch.
               .ahead = std::max<int64_t>(4, inputs.settings.workers + 2),
               .augmentation = device_augments() ? Augmentation{} : changes_.augmentation,
               .timeline = timeline}),
      on_device_(stream_, *inputs.data.train, max_images_, changes_.erases()) {}

bool TrainingBatches::device_augments() const {
  return stream_.device() != Device::kCpu && changes_.augmentation.changes_images() &&
         !changes_.augmentation.resized_crop;
}

TrainingBatches::MicroStep TrainingBatches::next(
    const GroupPeers& peers, FunctionRef<TapeListener*(const Shards& shards)> listener) {
  data::LoadedBatch batch = loader_.next();
  const TimelineSpan span(timeline_, "prepare images");
  if (changes_.erases()) batch.boxes = draw_boxes(batch);
  batch = on_device_.upload(std::move(batch));
  batch.shards.peers = peers.on_host;
  batch.shards.device_peers = peers.on_device;
  const auto tape = nn::make_batch(stream_,
                                   batch.shards,
                                   true,
                                   precision_,
                                   listener(batch.shards),
                                   {.seed = seed_, .images = batch.numbers});
  MicroStep step{.labels = batch.labels, .skipped = std::move(batch.skipped)};
  if (batch.images.dtype() == Dtype::kF32) {
    step.images = samples_on_tape(batch.images, tape);
  } else if (device_augments()) {
    step.images = nn::crop_flip_normalize(batch.images,
                                          batch.indices,
                                          tape,
                                          {.augmentation = changes_.augmentation,
                                           .epoch = batch.epoch,
                                           .normalize = changes_.normalize});
  } else {
    step.images = nn::normalize_image(batch.images, tape, changes_.normalize);
  }
  Tensor images = step.images.value();
  if (batch.boxes.defined()) kernels::erase_boxes(stream_, batch.shards, batch.boxes, images);
  if (changes_.mixes()) step.mix = mix(batch, images);
  return step;
}

Region TrainingBatches::draw_box(const data::ImageSize& size, data::ImageRandom& random) const {
  if (changes_.cutout > 0) return data::draw_cutout_box(changes_.cutout, size, random);
  const bool erases = random.uniform(0, 1) < static_cast<float>(changes_.erase);
  return erases ? data::draw_erased_box(size, random) : Region{};
}

Tensor TrainingBatches::draw_boxes(const data::LoadedBatch& batch) const {
  const Shape& shape = batch.images.shape();
  // Of one size for all batches, as the loader's tensors.
  Tensor boxes = Tensor::empty({max_images_, 4}, Dtype::kI32).slice(0, shape[0]);
  auto* next = boxes.data<int32_t>();
  for (const int64_t image : batch.indices.span<int64_t>()) {
    data::ImageRandom random(seed_, RandomPurpose::kErase, batch.epoch, image);
    const Region box = draw_box({shape[2], shape[3]}, random);
    for (const int64_t edge : {box.top, box.left, box.height, box.width}) {
      *next++ = static_cast<int32_t>(edge);
    }
  }
  return boxes;
}

Tensor TrainingBatches::mix(const data::LoadedBatch& batch, Tensor images) {
  Tensor weight = Tensor::empty({1}, Dtype::kF32, stream_.device());
  const int64_t number = first_batch_ + batch.number;
  const bool cuts =
      changes_.cutmix > 0 && (changes_.mixup <= 0 || draw_whether_cut(seed_, batch.epoch, number));
  if (!cuts) {
    kernels::fill(stream_, draw_mix(changes_.mixup, seed_, batch.epoch, number), weight);
    kernels::mix_images(stream_, batch.shards, weight, images);
    return weight;
  }
  const data::ImageSize size = {images.shape()[2], images.shape()[3]};
  const CutMix cut = draw_cut_mix(changes_.cutmix, size, seed_, batch.epoch, number);
  kernels::fill(stream_, cut.mix, weight);
  kernels::swap_boxes(stream_, batch.shards, cut.box, images);
  return weight;
}

}  // namespace lockstep
