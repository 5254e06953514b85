// Prepares the batches of a run for its steps: on the device, augmented, normalized, mixed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/augmentation.h"
#include "core/communicator.h"
#include "core/function_ref.h"
#include "core/region.h"
#include "core/stream.h"
#include "core/timeline.h"
#include "data/batch_plan.h"
#include "data/codecs/image.h"
#include "data/image_random.h"
#include "data/loader.h"
#include "engine/step/step_inputs.h"
#include "nn/functional.h"

namespace lockstep {

// On CUDA, images are copied as bytes through page-locked memory, on a stream of their own, beside
// the kernels of earlier steps. There are two buffers, so the host gets at most four steps ahead of
// the device. On the CPU nothing happens. Borrows the stream.
class DeviceBatches {
 public:
  // Batches have at most `max_images` images, with boxes or without. Errors: EnvironmentError when
  // memory runs out.
  DeviceBatches(Stream& stream,
                const data::Dataset& dataset,
                int64_t max_images,
                bool has_boxes = false);
  ~DeviceBatches();

  // Returns the batch with its tensors on the stream's device, valid for kernels that the stream is
  // given before the next call.
  data::LoadedBatch upload(data::LoadedBatch batch);

 private:
  class Buffer;

  Stream& stream_;
  std::unique_ptr<Stream> copies_;  // null on the CPU, as the buffers are
  std::array<std::unique_ptr<Buffer>, 2> buffers_;
  size_t uploads_ = 0;
};

// f32 samples (N,C,H,W) to precision.images, as the root of a tape: (N,C) where H and W are 1.
Var samples_on_tape(const Tensor& samples, const std::shared_ptr<const Batch>& batch);

// Returns the plan that cuts this rank's part of a training into batches.
data::BatchPlan batch_plan(const BatchDivision& batch,
                           uint64_t order_seed,
                           const data::Dataset& dataset,
                           const Communicator& ranks);

// The micro-steps of one rank, in order: images augmented and normalized, on the stream's device.
// Borrows the stream.
class TrainingBatches {
 public:
  struct MicroStep {
    Var images = {};     // the root of a tape
    Tensor labels = {};  // or targets
    Tensor mix = {};     // of kernels::ClassLossParams; undefined: images are not mixed
    std::vector<data::SkippedImage> skipped = {};

    const Shards& shards() const { return images.shards(); }
  };

  // The timeline may be null. Errors: EnvironmentError when memory runs out.
  TrainingBatches(const StepInputs& inputs, const StepRange& range, Timeline* timeline);

  // The ranks of a batch-norm group, where groups span ranks; else none.
  struct GroupPeers {
    Communicator* on_host = nullptr;
    DevicePeers* on_device = nullptr;
  };

  // Returns the next micro-step, valid for the work that the stream is given before the next call.
  // `listener`: for the tape of these shards. Errors: as data::Loader::next.
  MicroStep next(const GroupPeers& peers,
                 FunctionRef<TapeListener*(const Shards& shards)> listener);
  double waited_seconds() const { return loader_.waited_seconds(); }
  const data::LoaderSeconds& seconds() const { return loader_.seconds(); }

 private:
  // Whether the device crops and flips, with the loader's bits. Photos of any size are cropped
  // where they are decoded.
  bool device_augments() const;
  // Draws the box to erase in one image.
  Region draw_box(const data::ImageSize& size, data::ImageRandom& random) const;
  // Draws the boxes to erase in each image, as kernels::erase_boxes takes them, on the host.
  Tensor draw_boxes(const data::LoadedBatch& batch) const;
  // Draws how much of each image stays, and mixes the images.
  Tensor mix(const data::LoadedBatch& batch, Tensor images);

  Stream& stream_;
  Timeline* const timeline_;
  const ImageChanges changes_;
  const Precision precision_;
  const int64_t max_images_;
  const uint64_t seed_;
  const int64_t first_batch_;  // of this process, counted from step 0 of epoch 0
  data::Loader loader_;
  DeviceBatches on_device_;
};

}  // namespace lockstep
