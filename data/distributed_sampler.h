// Returns the images that a replica sees in an epoch, in order: PyTorch's DistributedSampler, index
// for index.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep::data {

struct SamplerOptions {
  int64_t size = 0;  // of the data set, at least 1
  int64_t replicas = 1;
  uint64_t seed = 0;
  int64_t epoch = 0;
  bool shuffle = true;
  bool drop_last = false;  // false: replicas that would come short repeat images from the start
};

// Images that each replica gets.
int64_t samples_per_replica(const SamplerOptions& options);

// The order images are dealt in: torch.randperm(size) of a generator seeded with seed + epoch,
// or 0..size-1.
std::vector<int64_t> epoch_order(const SamplerOptions& options);

// Image j of a replica: every replicas-th of the order, which starts again where it ends.
inline int64_t dealt_image(std::span<const int64_t> order,
                           int64_t replicas,
                           int64_t replica,
                           int64_t j) {
  const auto position = static_cast<size_t>(replica + j * replicas);
  return order[position % order.size()];
}

// list(DistributedSampler(dataset, replicas, replica, shuffle, seed, drop_last)) after
// set_epoch(epoch). Requires: 0 <= replica < replicas.
// Source: torch.utils.data.DistributedSampler.
std::vector<int64_t> distributed_sampler(const SamplerOptions& options, int64_t replica);

}  // namespace lockstep::data
#pragma GCC visibility pop
