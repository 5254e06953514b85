// Buckets on GPUs where ranks of one host reach each other's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/bucket.h"
#include "core/communicator.h"
#include "core/cuda/ipc.h"
#include "core/tensor.h"

namespace lockstep::comm::ipc {

// One bucket of every rank, by rank; this rank's own are its own.
struct PeerBucket {
  std::string label;
  std::vector<Tensor> values;
  // Recorded by their ranks alone.
  std::vector<cuda::InterprocessEvent> ready;  // its gradients are there
  std::vector<cuda::InterprocessEvent> done;   // its slice of the sum is, on all ranks
};

// A collective call. What others see ends with the result's last copy, which must be before any
// rank's buckets and events do. Errors: EnvironmentError, the same on all ranks, where CUDA refuses
// one of them.
std::vector<PeerBucket> share_buckets(Communicator& peers, std::span<const Bucket> buckets);

}  // namespace lockstep::comm::ipc
