// Buckets: gradients that are exchanged together, and their place in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/bucket_plan.h"
#include "core/autograd.h"
#include "core/communicator.h"
#include "core/tensor.h"

namespace lockstep::comm {

struct Bucket {
  int64_t index = 0;
  std::vector<size_t> parameters;  // places in the list that the reducer was made with
  std::vector<int64_t> offsets;    // where each one's gradient begins in values
  Tensor values;                   // (elements), parameters one after another, zeros between them
  int64_t bytes = 0;               // of the gradients alone
  std::string
      label;  // "bucket 2 (15 tensors, layer4.2.conv3.weight to layer4.1.bn1.bias, 25.1 MiB)"
};

// Plans buckets of dtype `wire` for the parameters at `places` and allocates them; every gradient
// begins at a multiple of 256 bytes. They lie in memory of `peers`, on CUDA on the device. A
// collective call.
std::vector<Bucket> make_buckets(Communicator& peers,
                                 std::span<const Var> parameters,
                                 std::span<const std::string> names,
                                 std::span<const size_t> places,
                                 Dtype wire,
                                 const BucketCaps& caps);

}  // namespace lockstep::comm
