// From the device of the evaluation to the host.
#pragma once

#include <optional>

#include "core/cuda/stream.h"
#include "core/stream.h"
#include "nn/functional.h"

namespace lockstep::trainers {

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
