// Per-shard vectors of all ranks, for batch-norm groups that span ranks.
#pragma once

#include <vector>

#include "core/shards.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace lockstep::nn {

// Without shards.peers, returns `leaves`. With it, returns for each of them the rows of all ranks
// in shard order, (total, columns). One exchange serves all tensors; all ranks must call. The
// values are only copied, and the caller sums them, so the result does not depend on the transport.
// Tensors on CUDA go from GPU to GPU if there are shards.device_peers, else through the host, which
// waits for the stream.
// Shapes: leaves (local shards, columns) f32. Errors: CommError.
std::vector<Tensor> gather_shards(Stream& stream,
                                  const Shards& shards,
                                  const std::vector<Tensor>& leaves);

}  // namespace lockstep::nn
