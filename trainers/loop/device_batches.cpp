#include "trainers/loop/device_batches.h"

#include <cstring>
#include <utility>

#include "core/cuda/memory.h"
#include "core/transfer.h"

namespace lockstep::trainers {
namespace {

// A tensor of the largest batch, on both sides.
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

Tensor copy_behind(Stream& stream, const Tensor& from, const Tensor& pinned) {
  Tensor to = pinned.slice(0, from.shape()[0]);
  transfer(stream, from, to);
  return to;
}

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
  for (auto& buffer : buffers_) buffer = std::make_unique<Buffer>(image, max_images);
}

DeviceBatches::~DeviceBatches() = default;

data::LoadedBatch DeviceBatches::upload(data::LoadedBatch batch) {
  if (!copies_) return batch;
  if (uploads_ > 0) buffers_[(uploads_ - 1) % 2]->note_used(stream_);
  buffers_[uploads_++ % 2]->send(*copies_, stream_, batch);
  return batch;
}

BatchResults::BatchResults(Stream& stream, int64_t max_images) {
  if (stream.device() != Device::kCuda) return;
  pinned_losses_ = cuda::empty_pinned({max_images}, Dtype::kF32);
  pinned_target_rank_ = cuda::empty_pinned({max_images}, Dtype::kI32);
  copied_.emplace();
}

void BatchResults::fetch(Stream& stream, const nn::CrossEntropy& results) {
  if (!copied_) {
    losses_ = results.losses;
    target_rank_ = results.target_rank;
    return;
  }
  losses_ = copy_behind(stream, results.losses, pinned_losses_);
  target_rank_ = copy_behind(stream, results.target_rank, pinned_target_rank_);
  copied_->record(stream.cuda());
}

void BatchResults::wait() const {
  if (copied_ && !copied_->done()) copied_->synchronize();
}

}  // namespace lockstep::trainers
