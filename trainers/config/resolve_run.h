// The arithmetic of a run: batch, shards and batch-norm groups that fit together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/config/run_config.h"

namespace lockstep::trainers {

// Settles batch, shards and batch-norm groups for `ranks` ranks of `threads` threads each (the
// least over ranks), and checks that they fit together and that `dataset_images` fill a step.
// Errors: UsageError, with the nearest values that work.
void resolve_run(RunConfig& config, int64_t ranks, int64_t threads, int64_t dataset_images);

// The rank counts among 1, 2, 4, 8 and config.ranks on which this batch, these shards and groups
// give the same bits: each rank's shards are then a subtree. None where the algorithm sums in
// another order than the tree's. Requires: resolve_run().
std::vector<int64_t> reach(const RunConfig& config);
// "same bits on 1,2,4,8 ranks (512 images a step, 8 shards, 8 BN groups)", and what to pass where
// fewer are reached; why not, where this run gives other bits than others. Requires: resolve_run().
std::string reach_text(const RunConfig& config);

}  // namespace lockstep::trainers
