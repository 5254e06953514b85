// Returns the images that a replica sees in an epoch, in order: PyTorch's DistributedSampler, index
// for index, and timm's RepeatAugSampler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep::data {

inline constexpr int64_t kMostImages = 0xFFFFFFFF / 20;  // that Mt19937::randperm() orders

struct SamplerOptions {
  int64_t size = 0;  // of the data set, at least 1
  int64_t replicas = 1;
  uint64_t seed = 0;
  int64_t epoch = 0;
  bool shuffle = true;
  bool drop_last = false;  // false: replicas that lack an image repeat images from the start
  // How many times in a row each image occurs in the order. Above 1 an epoch has as many samples as
  // without repeats; with 256 images or more their number is rounded down to a multiple of 256, and
  // drop_last is ignored.
  int64_t repeats = 1;
};

// Images that each replica gets.
int64_t samples_per_replica(const SamplerOptions& options);

// The order in which images are assigned: torch.randperm(size) of a generator seeded with seed +
// epoch, or 0..size-1. Errors: DataError for more than kMostImages.
std::vector<int64_t> epoch_order(const SamplerOptions& options);

// View j of a replica, which takes every replicas-th entry of the order, starting over at its end.
// View v shows image v % order.size() for the (v / order.size())-th time, counted from 0.
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
