// Buckets on GPUs that ranks of one host can access in each other's memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/bucket.h"
#include "core/communicator.h"
#include "core/cuda/ipc.h"
#include "core/tensor.h"

namespace lockstep::comm::ipc {

// One bucket of every rank, by rank; at this rank's index, its own tensor and events.
struct PeerBucket {
  std::string label;
  std::vector<Tensor> values;
  // By rank; each event is recorded by its rank alone.
  std::vector<cuda::InterprocessEvent> ready;  // its gradients are there
  std::vector<cuda::InterprocessEvent> done;   // its slice of the sum is, on all ranks
};

// A collective call. The mapping of the other ranks' memory ends with the result's last copy, which
// must end before any rank frees its buckets and events. Errors: EnvironmentError, the same on all
// ranks, where CUDA refuses one of them.
std::vector<PeerBucket> share_buckets(Communicator& peers, std::span<const Bucket> buckets);

}  // namespace lockstep::comm::ipc
