// How the images of one micro-step are cut into shards, on which "same bits on any number of ranks"
// rests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep {

class Communicator;
class DevicePeers;

inline constexpr int64_t kMaxShards = 65536;  // of a run

// A micro-step's images are dealt to `groups` batch-norm groups; each group's images are cut into
// total / groups shards. Every library call sees one shard; every reduction over the batch is a sum
// over shards in core/tree.h's order. This rank owns shards [first, first + local()); its images
// lie in shard order, shard k's in rows [offsets[k], offsets[k + 1]) of each batch tensor.
struct Shards {
  std::vector<int64_t> offsets = {0, 0};  // local() + 1 row numbers; a shard may be empty
  int64_t total = 1;                      // S, over all ranks
  int64_t first = 0;
  int64_t groups = 1;       // G; divides total
  int64_t step_images = 0;  // images in this optimizer step: all micro-steps, groups and ranks
  int64_t micro_step = 0;   // number within this optimizer step
  Communicator* peers = nullptr;        // needed where a group spans ranks
  DevicePeers* device_peers = nullptr;  // the same ranks, if their GPUs can exchange data directly

  int64_t local() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t images() const { return offsets.back(); }
  int64_t begin(int64_t k) const { return offsets[static_cast<size_t>(k)]; }
  int64_t count(int64_t k) const { return begin(k + 1) - begin(k); }

  int64_t per_group() const { return total / groups; }
  // Group of local shard k, counted over all ranks.
  int64_t group(int64_t k) const { return (first + k) / per_group(); }
  // Groups that have a shard on this rank: [first_group(), first_group() + local_groups()).
  int64_t first_group() const { return group(0); }
  int64_t local_groups() const { return local() == 0 ? 0 : group(local() - 1) - group(0) + 1; }
  // Errors: UsageError for numbers that do not fit together.
  void check() const;
  // All of `images` rows as one shard, one group, one rank.
  static Shards single(int64_t images) { return {.offsets = {0, images}, .step_images = images}; }
  // All of `images` rows on one rank: `groups` equal groups, where the n images of a group are cut
  // into m shards at floor(k*n/m). Requires: groups divides images and shards.
  static Shards cut(int64_t images, int64_t shards, int64_t groups);
};

// True when a batch-norm group has shards on more than one rank, where rank r of W owns the shards
// [floor(r S/W), floor((r+1) S/W)). Requires: 1 <= groups, groups divides shards, 1 <= ranks.
bool any_group_spans_ranks(int64_t shards, int64_t groups, int64_t ranks);

}  // namespace lockstep
#pragma GCC visibility pop
