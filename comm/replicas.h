// Keeping the ranks' copies of a model equal.
#pragma once

#include <cstdint>
#include <span>

#include "core/communicator.h"
#include "core/tensor.h"

namespace lockstep::comm {

// Overwrites every rank's tensors with root's. Requires: the same shapes and dtypes on all ranks.
void broadcast_tensors(Communicator& peers, std::span<Tensor> tensors, int root = 0);

// The lowest rank whose digest is not rank 0's, the same answer on every rank; -1 when all agree.
int first_differing_rank(Communicator& peers, uint64_t digest);

}  // namespace lockstep::comm
