// Assigns the images of every optimizer step, micro-step, batch-norm group and shard to ranks, by
// pure functions. Only `rank` differs between the ranks of a run, and it selects whole shards.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/shards.h"
#include "data/distributed_sampler.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

// Requires: groups * micro_steps divides global_batch, groups divides shards, 1 <= ranks <= shards,
// 0 <= rank < ranks.
struct BatchPlan {
  int64_t dataset_size = 0;
  int64_t global_batch = 0;  // B: images of an optimizer step, over all ranks and micro-steps
  int64_t micro_steps = 1;   // A: micro-steps of an optimizer step
  int64_t shards = 1;        // S: shards of a micro-step, over all ranks
  int64_t groups = 1;        // G: batch-norm groups
  int64_t rank = 0;
  int64_t ranks = 1;
  uint64_t seed = 0;
  bool shuffle = true;
  // Leaves out an epoch's last step if it would be short, as PyTorch's DataLoader(drop_last=True).
  bool drop_last = false;
  int64_t repeats = 1;  // of each image in an epoch: SamplerOptions::repeats
};

// The images of one micro-step on one rank, in shard order. The caller sets shards.peers.
struct MicroBatch {
  int64_t epoch = 0;
  std::vector<int64_t> images;  // views of images: dealt_view()
  Shards shards;
};

// A data set smaller than global_batch gives one short step, or none with drop_last.
int64_t steps_per_epoch(const BatchPlan& plan);

// One epoch of a plan. Each (group, micro-step) is a replica of PyTorch's DistributedSampler and
// takes global_batch / replicas of its images in each step, and in the last step what is left. The
// n images of a group in a micro-step are cut into m shards: shard k takes [floor(k n/m),
// floor((k+1) n/m)). Rank r of W owns shards [floor(r S/W), floor((r+1) S/W)).
// Thread safety: const functions may be called from any thread.
class EpochPlan {
 public:
  // Errors: InternalError when the plan breaks its requirements.
  EpochPlan(const BatchPlan& plan, int64_t epoch);

  int64_t epoch() const { return epoch_; }
  // Requires: 0 <= step < steps_per_epoch(plan), 0 <= micro < plan.micro_steps.
  MicroBatch micro_batch(int64_t step, int64_t micro) const;

 private:
  BatchPlan plan_;
  int64_t epoch_;
  std::vector<int64_t> order_;
};

// Evaluation takes images in order, cut into chunks of chunk_images, the last of which may be
// shorter. Rank r of W takes chunks r, r + W, ...; a batch has chunks_at_once of them, each as one
// shard.
struct EvaluationPlan {
  int64_t dataset_size = 0;
  int64_t chunk_images = 0;
  int64_t chunks_at_once = 1;
  int64_t rank = 0;
  int64_t ranks = 1;
};

// Chunks of all ranks together.
int64_t chunk_count(const EvaluationPlan& plan);
// Batches of this rank; 0 when there are fewer chunks than ranks.
int64_t evaluation_batches(const EvaluationPlan& plan);
// The chunk that is local shard k of a batch.
int64_t chunk_of(const EvaluationPlan& plan, int64_t batch, int64_t k);
// Shards::step_images counts this batch's images. Requires: 0 <= batch < evaluation_batches(plan).
MicroBatch evaluation_batch(const EvaluationPlan& plan, int64_t batch);

// Batches 0..count-1, for a loader. It calls `at` in order, from one thread at a time.
struct BatchSequence {
  int64_t count = 0;
  int64_t max_images = 0;  // of the largest batch
  int64_t repeats = 1;     // of each image in an epoch, at most
  std::function<MicroBatch(int64_t number)> at;
};

// Optimizer steps [first_step, end_step), counted from the start of the run across epochs, with
// plan.micro_steps batches each.
BatchSequence training_sequence(const BatchPlan& plan, int64_t first_step, int64_t end_step);
BatchSequence evaluation_sequence(const EvaluationPlan& plan);

}  // namespace lockstep::data
#pragma GCC visibility pop
