// Per-shard vectors of all ranks, for batch-norm groups that span ranks.
#pragma once

#include <vector>

#include "core/shards.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace lockstep::nn {

// Without shards.peers: `leaves` themselves. With: for each of them every rank's rows in shard
// order, (total, columns), in one exchange for all; all ranks must call. Counts travel as data, the
// sum is formed by the caller: exact with any transport.
// Tensors on CUDA go from GPU to GPU where shards.device_peers knows a way, else through the host,
// which waits for the stream.
// Shapes: leaves (local shards, columns) f32. Errors: CommError.
std::vector<Tensor> gather_shards(Stream& stream,
                                  const Shards& shards,
                                  const std::vector<Tensor>& leaves);

}  // namespace lockstep::nn
