#include "nn/gather_shards.h"

#include <cstring>

#include "core/communicator.h"

namespace lockstep::nn {

Tensor gather_shards(const Shards& shards, const Tensor& leaves) {
  if (shards.peers == nullptr) return leaves;
  if (leaves.device() != Device::kCpu) {
    throw DeviceError("[gather_shards] leaves: expected on the cpu");
  }
  const int64_t columns = leaves.shape()[1];
  const int64_t ranks = shards.peers->size();
  const int64_t most =
      (shards.total + ranks - 1) / ranks;  // ranks send equal sizes; the rest is padding
  const auto row_bytes = static_cast<size_t>(columns) * sizeof(float);

  Tensor mine = Tensor::zeros({most, columns}, Dtype::kF32);
  std::memcpy(mine.bytes(), leaves.bytes(), leaves.nbytes());
  Tensor padded = Tensor::empty({ranks * most, columns}, Dtype::kF32);
  shards.peers->all_gather({mine.bytes(), mine.nbytes()}, {padded.bytes(), padded.nbytes()});

  Tensor all = Tensor::empty({shards.total, columns}, Dtype::kF32);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t begin = rank * shards.total / ranks;
    const int64_t count = (rank + 1) * shards.total / ranks - begin;
    std::memcpy(all.bytes() + static_cast<size_t>(begin) * row_bytes,
                padded.bytes() + static_cast<size_t>(rank * most) * row_bytes,
                static_cast<size_t>(count) * row_bytes);
  }
  return all;
}

}  // namespace lockstep::nn
