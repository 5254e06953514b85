// The arithmetic of a run: batch, shards and batch-norm groups that fit together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"

namespace lockstep {

// Names errors give to the parts of a batch: the programs' flags, or a struct's members.
struct BatchNames {
  std::string_view images = "batch";
  std::string_view per_rank = "per_rank";
  std::string_view micro_steps = "micro_steps";
  std::string_view shards = "shards";
  std::string_view bn_groups = "batch_norm_groups";
  std::string_view repeats = "repeats";
  std::string_view drop_last = "drop_last";
};

// How a batch is to be cut; divide_batch() settles the rest.
struct BatchRequest {
  int64_t default_per_rank = 0;          // where nothing else is asked for
  std::optional<int64_t> per_rank = {};  // images per rank and micro-step
  std::optional<int64_t> global = {};    // images an optimizer step
  int64_t micro_steps = 1;               // A
  std::optional<int64_t> shards = {};
  std::optional<int64_t> bn_groups = {};  // 1: batch norm over all ranks
  bool drop_last = false;                 // no short step at the end of an epoch
  int64_t repeats = 1;                    // views of an image in a row: data::SamplerOptions
  BatchNames names = {};
};

// How the images of an optimizer step are divided among ranks, micro-steps and shards.
struct BatchDivision {
  int64_t ranks = 1;
  int64_t images = 0;       // B, of all ranks and micro-steps
  int64_t micro_steps = 1;  // A
  int64_t shards = 1;       // S, a micro-step
  int64_t bn_groups = 1;    // G, a micro-step
  bool drop_last = false;   // as BatchPlan of data/batch_plan.h has it
  int64_t repeats = 1;      // also BatchPlan's
  Device device = Device::kCpu;
};

// Divides the batch among `ranks` ranks with `threads` threads each (the smallest number over
// ranks). Errors: UsageError, with the nearest values that work, where what is asked for does not
// fit together.
BatchDivision divide_batch(const BatchRequest& asked,
                           Device device,
                           int64_t ranks,
                           int64_t threads);

int64_t steps_per_epoch(const BatchDivision& batch, int64_t dataset_images);

// Errors: UsageError where an epoch of this many images would have no step.
void check_steps(const BatchRequest& asked, const BatchDivision& batch, int64_t dataset_images);

// Mixup and CutMix pair the images of a shard; the middle one of an odd number has no partner.
struct Mixing {
  int64_t images = 0;         // of a step that is not the last one of an epoch
  int64_t unmixed = 0;        // of them
  int64_t better_shards = 0;  // a number of shards that leaves fewer; 0: none does
};
Mixing mixing_of(const BatchDivision& batch, int64_t dataset_images);

// Whether each rank's shards are a subtree of the sum over all shards (core/tree.h): then this
// division gives the same bits on such ranks.
bool shares_subtrees(const BatchDivision& batch, int64_t ranks);
// The fewest shards, not fewer than now, that the groups divide and that each of these rank counts
// can share as subtrees; 0 when there are none.
int64_t shards_for(const BatchDivision& batch, std::span<const int64_t> rank_counts);

}  // namespace lockstep
