// Plans which gradients are exchanged together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::comm {

struct BucketCaps {
  int64_t first_bytes = int64_t{1} << 20;
  int64_t bytes = int64_t{25} << 20;
};

// Buckets of tensor indices. The last tensors come first, because backward() finishes them first; a
// bucket closes after the tensor that reaches its cap, so that it may exceed it, and no tensor is
// split. bytes[i]: size of tensor i on the wire. Source: PyTorch's DistributedDataParallel.
std::vector<std::vector<size_t>> plan_buckets(std::span<const int64_t> bytes,
                                              const BucketCaps& caps);

}  // namespace lockstep::comm
