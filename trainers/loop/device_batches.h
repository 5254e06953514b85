// From the loader's memory to the device of the step.
#pragma once

#include <array>
#include <memory>

#include "core/stream.h"
#include "data/loader.h"

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

}  // namespace lockstep::trainers
