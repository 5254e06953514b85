// Buckets: gradients that are exchanged together, and their place in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/autograd.h"
#include "core/communicator.h"
#include "core/tensor.h"

#pragma GCC visibility push(default)
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

struct Bucket {
  int64_t index = 0;
  std::vector<size_t> parameters;  // places in the list that the reducer was made with
  std::vector<int64_t> offsets;    // where each one's gradient begins in values
  std::vector<Shape> shapes;       // of each one
  Tensor values;                   // (elements), parameters one after another, zeros between them
  int64_t bytes = 0;               // of the gradients alone
  std::string
      label;  // "bucket 2 (15 tensors, layer4.2.conv3.weight to layer4.1.bn1.bias, 25.1 MiB)"

  // The i-th one's part of values. Errors: DtypeError unless they are f32.
  std::span<float> gradient(size_t i) {
    return values.span<float>().subspan(static_cast<size_t>(offsets[i]),
                                        static_cast<size_t>(shapes[i].numel()));
  }
};

struct BucketLayout {
  Dtype wire = Dtype::kF32;
  BucketCaps caps{};
  bool spare = false;  // adds an element that is no gradient's to the last bucket's end
};

// Plans buckets for the parameters at `places` and allocates them; every gradient begins at a
// multiple of 256 bytes. They lie in memory of `peers`, on CUDA on the device. A collective call.
std::vector<Bucket> make_buckets(Communicator& peers,
                                 std::span<const Var> parameters,
                                 std::span<const std::string> names,
                                 std::span<const size_t> places,
                                 const BucketLayout& layout);

}  // namespace lockstep::comm
#pragma GCC visibility pop
