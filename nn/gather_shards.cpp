#include "nn/gather_shards.h"

#include <cstring>

#include "core/communicator.h"
#include "core/round_up.h"
#include "core/transfer.h"

namespace lockstep::nn {
namespace {

// Rows [first, first + count) of a matrix, and where their bytes lie.
struct Rows {
  int64_t first = 0;
  int64_t count = 0;

  size_t start(const Tensor& matrix) const { return static_cast<size_t>(first) * pitch(matrix); }
  size_t size(const Tensor& matrix) const { return static_cast<size_t>(count) * pitch(matrix); }

 private:
  static size_t pitch(const Tensor& matrix) {
    return static_cast<size_t>(matrix.shape()[1]) * size_of(matrix.dtype());
  }
};

Rows shards_of(const Shards& shards, int64_t rank, int64_t ranks) {
  const int64_t first = rank * shards.total / ranks;
  return {first, (rank + 1) * shards.total / ranks - first};
}

std::vector<Tensor> gather_on_cpu(const Shards& shards, const std::vector<Tensor>& leaves) {
  const int64_t ranks = shards.peers->size();
  const Rows most{0, ceil_div(shards.total, ranks)};  // all ranks send this size, with padding
  size_t block = 0;
  std::vector<Tensor> gathered;
  gathered.reserve(leaves.size());
  for (const Tensor& part : leaves) {
    block += most.size(part);
    gathered.push_back(Tensor::empty({shards.total, part.shape()[1]}, Dtype::kF32));
  }

  Tensor mine = Tensor::zeros({static_cast<int64_t>(block)}, Dtype::kU8);
  Tensor blocks = Tensor::empty({ranks, static_cast<int64_t>(block)}, Dtype::kU8);
  std::byte* to = mine.bytes();
  for (const Tensor& part : leaves) {
    std::memcpy(to, part.bytes(), part.nbytes());
    to += most.size(part);
  }
  shards.peers->all_gather({mine.bytes(), block}, {blocks.bytes(), blocks.nbytes()});

  for (int64_t rank = 0; rank < ranks; ++rank) {
    const Rows rows = shards_of(shards, rank, ranks);
    const std::byte* from = blocks.bytes() + static_cast<size_t>(rank) * block;
    for (Tensor& all : gathered) {
      std::memcpy(all.bytes() + rows.start(all), from, rows.size(all));
      from += most.size(all);
    }
  }
  return gathered;
}

std::vector<Tensor> gather_on_device(const Shards& shards, const std::vector<Tensor>& leaves) {
  const int64_t ranks = shards.peers->size();
  std::vector<int64_t> first_rows;
  for (int64_t rank = 0; rank <= ranks; ++rank) {
    first_rows.push_back(shards_of(shards, rank, ranks).first);
  }
  std::vector<Tensor> gathered;
  gathered.reserve(leaves.size());
  for (const Tensor& part : leaves) {
    gathered.push_back(Tensor::empty({shards.total, part.shape()[1]}, Dtype::kF32, Device::kCuda));
  }
  shards.device_peers->gather_rows(leaves, first_rows, gathered);
  return gathered;
}

}  // namespace

std::vector<Tensor> gather_shards(Stream& stream,
                                  const Shards& shards,
                                  const std::vector<Tensor>& leaves) {
  if (shards.peers == nullptr) return leaves;
  if (shards.device_peers != nullptr) return gather_on_device(shards, leaves);
  std::vector<Tensor> on_cpu;
  on_cpu.reserve(leaves.size());
  for (const Tensor& part : leaves) on_cpu.push_back(to_cpu(stream, part));
  std::vector<Tensor> gathered = gather_on_cpu(shards, on_cpu);
  for (Tensor& all : gathered) all = to_device(stream, all);
  return gathered;
}

}  // namespace lockstep::nn
