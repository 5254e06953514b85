// Per-shard vectors of all ranks, for batch-norm groups that span ranks.
#pragma once

#include "core/shards.h"
#include "core/tensor.h"

namespace lockstep::nn {

// Without shards.peers: `leaves` itself. With: every rank's rows in shard order, (total, columns);
// all ranks must call. Counts travel as data, the sum is formed by the caller: exact with any
// transport.
// Shapes: leaves (local shards, columns) f32. Errors: CommError; DeviceError off the CPU.
Tensor gather_shards(const Shards& shards, const Tensor& leaves);

}  // namespace lockstep::nn
