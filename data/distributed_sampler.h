// Returns the images that a replica sees in an epoch, in order: PyTorch's DistributedSampler, index
// for index, and timm's RepeatAugSampler.
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
  // Places in a row that an image has in the order. Above 1 an epoch is as long as without, down to
  // a multiple of 256 images of a larger data set, and drop_last says nothing.
  int64_t repeats = 1;
};

// Images that each replica gets.
int64_t samples_per_replica(const SamplerOptions& options);

// The order images are dealt in: torch.randperm(size) of a generator seeded with seed + epoch,
// or 0..size-1.
std::vector<int64_t> epoch_order(const SamplerOptions& options);

// View j of a replica: every replicas-th of the order, which starts again where it ends. View v is
// image v % order.size(), repeated for the (v / order.size())-th time.
inline int64_t dealt_view(std::span<const int64_t> order,
                          const SamplerOptions& options,
                          int64_t replica,
                          int64_t j) {
  const auto images = std::ssize(order);
  const int64_t position = (replica + j * options.replicas) % (images * options.repeats);
  return order[static_cast<size_t>(position / options.repeats)] +
         position % options.repeats * images;
}

// list(DistributedSampler(dataset, replicas, replica, shuffle, seed, drop_last)) after
// set_epoch(epoch), or, modulo the size, list(RepeatAugSampler(dataset, replicas, replica, shuffle,
// repeats)) after set_epoch(seed + epoch). Requires: 0 <= replica < replicas.
// Source: torch.utils.data.DistributedSampler; timm.data.distributed_sampler.
std::vector<int64_t> distributed_sampler(const SamplerOptions& options, int64_t replica);

}  // namespace lockstep::data
#pragma GCC visibility pop
