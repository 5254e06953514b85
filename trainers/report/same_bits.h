// On which numbers of ranks a run has the same bits, and what to pass where they are few.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/settings/batch_division.h"
#include "engine/settings/exchange_config.h"

namespace lockstep::trainers {

// The rank counts among 1, 2, 4, 8 and batch.ranks on which this batch, these shards and groups
// give the same bits: each rank's shards are then a subtree. None where the algorithm sums in
// another order than the tree's.
std::vector<int64_t> same_bits_ranks(const BatchDivision& batch, const ExchangeConfig& exchange);
// "same bits on 1,2,4,8 ranks (512 images per step, 8 shards, 8 BN groups)", and what to pass where
// fewer are reached; why not, where this run gives other bits than others.
std::string same_bits_text(const BatchDivision& batch, const ExchangeConfig& exchange);

}  // namespace lockstep::trainers
