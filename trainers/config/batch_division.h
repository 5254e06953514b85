// The arithmetic of a run: batch, shards and batch-norm groups that fit together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainers/config/run_request.h"

namespace lockstep::trainers {

// How the images of an optimizer step are divided among ranks, micro-steps and shards.
struct BatchDivision {
  int64_t ranks = 1;
  int64_t images = 0;       // B, of all ranks and micro-steps
  int64_t micro_steps = 1;  // A
  int64_t shards = 1;       // S, a micro-step
  int64_t bn_groups = 1;    // G, a micro-step
  bool drop_last = false;   // data::BatchPlan's, as below
  int64_t repeats = 1;
  Device device = Device::kCpu;
};

// Divides the batch among `ranks` ranks with `threads` threads each (the smallest number over
// ranks). Errors: UsageError, with the nearest values that work, where the request's values do not
// fit together.
BatchDivision divide_batch(const RunRequest& request, int64_t ranks, int64_t threads);

int64_t steps_per_epoch(const BatchDivision& batch, int64_t dataset_images);

// Errors: UsageError where --drop-last leaves no step in an epoch of this many images.
void check_steps(const BatchDivision& batch, int64_t dataset_images);

// Mixup and CutMix pair the images of a shard; the middle one of an odd number has no partner.
struct Mixing {
  int64_t images = 0;    // of a step that is not the last one of an epoch
  int64_t unmixed = 0;   // of them
  std::string remedy{};  // "--shards 10" if that leaves fewer; empty: none does
};
// `request` mixes images where it has --mixup or --cutmix; else nothing is returned.
std::optional<Mixing> mixing_of(const RunRequest& request,
                                const BatchDivision& batch,
                                int64_t dataset_images);
// Errors: UsageError where images would be mixed, but no shard has two.
void check_mixing(const RunRequest& request, const BatchDivision& batch, int64_t dataset_images);

// The rank counts among 1, 2, 4, 8 and batch.ranks on which this batch, these shards and groups
// give the same bits: each rank's shards are then a subtree. None where the algorithm sums in
// another order than the tree's.
std::vector<int64_t> same_bits_ranks(const BatchDivision& batch, const ExchangeConfig& exchange);
// "same bits on 1,2,4,8 ranks (512 images per step, 8 shards, 8 BN groups)", and what to pass where
// fewer are reached; why not, where this run gives other bits than others.
std::string same_bits_text(const BatchDivision& batch, const ExchangeConfig& exchange);

}  // namespace lockstep::trainers
