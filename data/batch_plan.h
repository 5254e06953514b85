// Deals the images of every optimizer step, micro-step, batch-norm group and shard to ranks. Pure
// functions; only rank and ranks differ between the ranks of a run, and they choose whole shards.
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
  int64_t micro_steps = 1;   // A
  int64_t shards = 1;        // S, of a micro-step, over all ranks
  int64_t groups = 1;        // G
  int64_t rank = 0;
  int64_t ranks = 1;
  uint64_t seed = 0;
  bool shuffle = true;
  // An epoch ends before a step that would be short, as with PyTorch's DataLoader(drop_last=True).
  bool drop_last = false;
  int64_t repeats = 1;  // of an image in a row, dealt one by one: SamplerOptions
};

// The images of one micro-step on one rank, in shard order. shards.peers is left to the caller.
struct MicroBatch {
  int64_t epoch = 0;
  std::vector<int64_t> images;  // views of images: dealt_view()
  Shards shards;
};

// A data set smaller than global_batch makes one short step, and none with drop_last.
int64_t steps_per_epoch(const BatchPlan& plan);

// One epoch of a plan. Each (group, micro-step) is a replica of PyTorch's DistributedSampler and
// takes global_batch / replicas of its images a step, the last step what is left; the group's n
// images of a micro-step are cut into its m shards: shard k takes [floor(k n/m), floor((k+1) n/m));
// rank r owns shards [floor(r S/W), floor((r+1) S/W)).
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

// Evaluation: images in order, cut into chunks of chunk_images (the last one shorter); rank r of W
// takes chunks r, r + W, ..., as many at once as it has threads, each as one shard.
struct EvaluationPlan {
  int64_t dataset_size = 0;
  int64_t chunk_images = 0;
  int64_t chunks_at_once = 1;
  int64_t rank = 0;
  int64_t ranks = 1;
};

// Over all ranks.
int64_t chunk_count(const EvaluationPlan& plan);
// Batches of this rank; 0 when there are fewer chunks than ranks.
int64_t evaluation_batches(const EvaluationPlan& plan);
// Which chunk local shard k of a batch is.
int64_t chunk_of(const EvaluationPlan& plan, int64_t batch, int64_t k);
// Shards::step_images counts this batch's images. Requires: 0 <= batch < evaluation_batches(plan).
MicroBatch evaluation_batch(const EvaluationPlan& plan, int64_t batch);

// Batches 0..count-1 as a loader wants them. `at` is called in order, by one thread at a time.
struct BatchSequence {
  int64_t count = 0;
  int64_t max_images = 0;  // no batch has more
  int64_t repeats = 1;     // of each image in an epoch, at most
  std::function<MicroBatch(int64_t number)> at;
};

// Optimizer steps [first_step, end_step) counted from the start of the run through all epochs, each
// as plan.micro_steps batches.
BatchSequence training_sequence(const BatchPlan& plan, int64_t first_step, int64_t end_step);
BatchSequence evaluation_sequence(const EvaluationPlan& plan);

}  // namespace lockstep::data
#pragma GCC visibility pop
