// Computes the GPU memory that a training needs, both for lockstep plan and for a run before its
// first step.
#pragma once

#include <cstdint>

#include "core/communicator.h"
#include "data/dataset.h"
#include "trainers/config/run_request.h"
#include "trainers/planner/dry_step.h"

namespace lockstep::trainers {

// Bytes of one rank.
struct MemoryPlan {
  int64_t images = 0, other_images = 0;  // of a step, and of another, to see what grows with them
  StepMemory step = {}, other_step = {};
  int64_t workspace = 0;  // of the largest convolution by cuDNN
  int64_t exchange = 0;   // other ranks' parts of a bucket, and gradients rounded to send them

  int64_t needed() const { return step.needed() + beside_steps(); }
  int64_t bytes_per_image() const;
  // Returns the images of the largest step that fits into `memory` bytes; 0: none.
  int64_t largest_batch(int64_t memory) const;

 private:
  int64_t beside_steps() const { return StepMemory::whole_pieces(workspace) + exchange; }
};

// Returns the bytes for other ranks' parts of a bucket of at most that size, where NCCL carries
// gradients.
int64_t exchange_bytes(int64_t gradients, int64_t ranks, int64_t bucket_bytes);

// Returns the work that the run's flags add to a step of one rank.
StepExtras extras_of(const RunRequest& request, const BatchDivision& batch);

// Returns the largest number of images that a rank has in a micro-step, of `images` in an optimizer
// step.
int64_t images_per_rank(const BatchDivision& batch, int64_t images);

struct TestedImages {
  int64_t count = 0;  // 0: nothing is evaluated
  data::ImageShape shape;
};

// Plans the memory for the images of the run's data sets, without a workspace.
MemoryPlan plan_memory(const ResolvedRun& run,
                       const ModelOptions& network,
                       int64_t train_images,
                       const TestedImages& tested);

// A collective call, before the run allocates memory. Refuses a training that needs more than is
// free on the chosen device: an error ends all ranks, with the parts and the largest batch that
// fits. If memory runs out later nevertheless, errors suggest a smaller batch. Returns the bytes of
// the pool for steps; 0 off CUDA, and for an evaluation. Ranks that share a device share its
// memory. workspace: bytes of the largest convolution's.
int64_t settle_memory(const ResolvedRun& run,
                      const ModelOptions& network,
                      const data::DatasetPair& data,
                      Communicator& ranks,
                      int64_t workspace);

}  // namespace lockstep::trainers
