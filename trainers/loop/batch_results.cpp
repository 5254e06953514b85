#include "trainers/loop/batch_results.h"

#include "core/cuda/memory.h"
#include "core/transfer.h"

namespace lockstep::trainers {
namespace {

Tensor copy_behind(Stream& stream, const Tensor& from, const Tensor& pinned) {
  Tensor to = pinned.slice(0, from.shape()[0]);
  transfer(stream, from, to);
  return to;
}

}  // namespace

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
