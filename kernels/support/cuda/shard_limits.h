// How many shards CUDA kernels take.
#pragma once

#include <cstdint>

namespace lockstep::kernels::cuda {

// On a rank: a table of its shards is a kernel's argument.
inline constexpr int64_t kMaxShardsOfRank = 256;

// Leaves of a tree of sums, as the shards of a batch-norm group are. A thread reads kTreeFan leaves
// together, a complete subtree, and keeps complete subtrees of kTreeLevels levels in shared memory.
inline constexpr int kTreeFan = 4;
inline constexpr int kTreeLevels = 7;
inline constexpr int64_t kMaxTreeLeaves = int64_t{kTreeFan} * ((1 << kTreeLevels) - 1);

}  // namespace lockstep::kernels::cuda
