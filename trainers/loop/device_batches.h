// Batches on their way to the device of a step, and an evaluation's results on their way back.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "core/cuda/stream.h"
#include "core/stream.h"
#include "data/loader.h"
#include "nn/functional.h"

namespace lockstep::trainers {

// On CUDA images travel as bytes through page-locked memory, on a stream of their own, beside the
// kernels of earlier steps. There are two buffers, so the host gets ahead of the device by two
// steps at most. On the CPU nothing happens. Borrows the stream.
class DeviceBatches {
 public:
  // Batches have at most `max_images` images. Errors: EnvironmentError when memory runs out.
  DeviceBatches(Stream& stream, const data::ImageShape& image, int64_t max_images);
  ~DeviceBatches();

  // The batch with its tensors on the stream's device, valid for kernels that the stream is given
  // before the next call.
  data::LoadedBatch upload(data::LoadedBatch batch);

 private:
  class Buffer;

  Stream& stream_;
  std::unique_ptr<Stream> copies_;  // null on the CPU, as the buffers are
  std::array<std::unique_ptr<Buffer>, 2> buffers_;
  size_t uploads_ = 0;
};

// A batch's losses (N) f32 and target ranks (N) i32. On CUDA they travel into page-locked memory
// behind the kernels that make them, and the host need not wait before it queues the next batch. On
// the CPU they stay where they are.
class BatchResults {
 public:
  // Batches have at most `max_images` images. Errors: EnvironmentError when memory runs out.
  BatchResults(Stream& stream, int64_t max_images);

  // Queues the copies. Overwrites what was fetched before.
  void fetch(Stream& stream, const nn::CrossEntropy& results);
  // They are here on return. Errors: CudaError.
  void wait() const;

  const Tensor& losses() const { return losses_; }
  const Tensor& target_rank() const { return target_rank_; }

 private:
  Tensor pinned_losses_, pinned_target_rank_;
  Tensor losses_, target_rank_;
  std::optional<cuda::Event> copied_;  // on CUDA
};

}  // namespace lockstep::trainers
