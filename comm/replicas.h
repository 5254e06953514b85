// Keeps the ranks' copies of a model equal.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/communicator.h"
#include "core/tensor.h"

#pragma GCC visibility push(default)
namespace lockstep::comm {

// Overwrites the tensors of all ranks with root's. Tensors on CUDA go through `between_gpus`, in
// the order of its stream, unless it is null; all others go through the host. Requires: the same
// shapes, dtypes and devices on all ranks.
void broadcast_tensors(Communicator& peers,
                       std::span<Tensor> tensors,
                       DevicePeers* between_gpus = nullptr,
                       int root = 0);

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// The first place where the ranks' copies differ. The ranks named differ from the copy that most
// ranks hold; where two copies are as frequent, that of the lowest rank counts as right.
struct ReplicaDifference {
  std::vector<int> ranks;  // at least one, ascending
  int right_rank = 0;      // the lowest rank that holds the right copy
  std::string tensor;      // the first that differs
  int64_t element = 0;     // the first that ranks[0] has otherwise, in row-major order
  std::string value;       // ranks[0]'s
  std::string right_value;
};

// "rank 1 differs in layer1.0.weight at element 37: -0.152908, rank 0 has 0.152908"
std::string to_string(const ReplicaDifference& difference);

// Compares all ranks' tensors bit for bit; nothing when they are equal. A collective call, the same
// answer on every rank. Costs one pass over the tensors and 8 bytes per rank while they are equal.
// Requires: the same names, shapes and dtypes on all ranks.
std::optional<ReplicaDifference> audit_replicas(Communicator& peers,
                                                std::span<const NamedTensor> tensors);

}  // namespace lockstep::comm
#pragma GCC visibility pop
