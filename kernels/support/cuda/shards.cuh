// Where each shard begins, as a kernel's argument.
#pragma once

#include <fmt/core.h>

#include "core/shards.h"
#include "kernels/support/cuda/shard_limits.h"

namespace lockstep::kernels::cuda {
namespace {

struct ShardTable {
  int count = 0;
  int64_t begin[kMaxShardsOfRank + 1] = {};
};

// Errors: ShapeError for more than kMaxShardsOfRank shards on this rank.
inline ShardTable shard_table(const Shards& shards) {
  if (shards.local() > kMaxShardsOfRank) {
    throw ShapeError(fmt::format(
        "[cuda] shards: got {} on a rank, expected {} at most", shards.local(), kMaxShardsOfRank));
  }
  ShardTable table;
  table.count = static_cast<int>(shards.local());
  for (int64_t k = 0; k <= shards.local(); ++k) table.begin[k] = shards.begin(k);
  return table;
}

// The shard that holds `row`. Requires: one of them does.
__device__ inline int shard_of(const ShardTable& table, int64_t row) {
  int first = 0;
  int last = table.count - 1;
  while (first < last) {
    const int middle = (first + last + 1) / 2;
    if (table.begin[middle] <= row) {
      first = middle;
    } else {
      last = middle - 1;
    }
  }
  return first;
}

}  // namespace
}  // namespace lockstep::kernels::cuda
