// Sources of the statistics of kernels that normalize.
#pragma once

#include "kernels/norm/batch_norm.cuh"

namespace lockstep::kernels::cuda {
namespace {

// Moments of the slices of each shard: rows (mean[C], M2[C], count), means relative to origins
// (shards, C).
struct SliceMoments {
  float* rows = nullptr;
  float* origins = nullptr;
  int most_slices = 0;

  __device__ float* row(int shard, int slice, int64_t channels) const {
    return rows + (int64_t{shard} * most_slices + slice) * (2 * channels + 1);
  }
  __device__ Moments<1> node(int shard, int slice, int64_t channels, int channel) const {
    const float* from = row(shard, slice, channels);
    return {from[2 * channels], {from[channel]}, {from[channels + channel]}};
  }
};

// One channel of a shard's statistics vector.
struct ShardMoments {
  float mean, m2, images;

  __device__ void store(const ChannelPlan& plan, int shard, int channel, float* stats) const {
    float* leaf = stats + shard * (2 * int64_t{plan.channels} + 1);
    leaf[channel] = mean;
    leaf[plan.channels + channel] = m2;
    if (channel == 0) leaf[2 * plan.channels] = images;
  }
};

__device__ __forceinline__ ShardMoments shard_moments(const ChannelPlan& plan,
                                                      const SliceMoments& found,
                                                      int shard,
                                                      int channel,
                                                      const Moments<1>& joined) {
  const int64_t images = plan.shards.begin[shard + 1] - plan.shards.begin[shard];
  const float origin = images > 0 ? found.origins[int64_t{shard} * plan.channels + channel] : 0.0F;
  return {origin + joined.mean[0], joined.m2[0], static_cast<float>(images)};
}

// Statistics that are stored in memory.
struct StoredStatistics {
  Normalization norm;

  template <int n>
  __device__ void fill(const ChannelPlan& plan, int shard, TileConstants<n, kAffine>& to) const {
    to.fill(plan, [&](int channel, float(&values)[kAffine]) {
      const int64_t group = plan.group(shard);
      set_affine(norm, norm.of(group, channel), channel, values);
    });
  }
};

// Two sources of statistics for groups of one shard. All threads of a block call gather(); those
// that fill constants call of() with its result. FromSlices joins the moments of the shard's
// slices.
struct FromSlices {
  SliceMoments found;

  template <int n>
  __device__ Moments<1> gather(const ChannelPlan& plan, int shard) const {
    return join_slices<n>(plan, shard, [&](int slice, int channel) {
      return found.node(shard, slice, plan.channels, channel);
    });
  }
  __device__ ShardMoments of(const ChannelPlan& plan,
                             int shard,
                             int channel,
                             const Moments<1>& joined) const {
    return shard_moments(plan, found, shard, channel, joined);
  }
};

// FromSums uses sums that a convolution gave: (2, shards, C), of values and of their squares.
struct FromSums {
  const float* sums;

  struct Nothing {};
  template <int n>
  __device__ Nothing gather(const ChannelPlan& /*plan*/, int /*shard*/) const {
    return {};
  }
  __device__ ShardMoments of(const ChannelPlan& plan,
                             int shard,
                             int channel,
                             const Nothing& /*nothing*/ = {}) const {
    const int64_t images = plan.shards.begin[shard + 1] - plan.shards.begin[shard];
    if (images == 0) return {0, 0, 0};
    const float* sum = sums + int64_t{shard} * plan.channels + channel;
    const float square_sum = sum[int64_t{plan.shards.count} * plan.channels];
    const float mean = *sum / (static_cast<float>(images) * static_cast<float>(plan.image_pixels));
    const float m2 = __fmaf_rn(-*sum, mean, square_sum);
    return {mean, m2 < 0 ? 0.0F : m2, static_cast<float>(images)};  // rounding; NaN stays
  }
};

// Computes the statistics of groups of one shard. The first block of a tile stores them.
template <class Source>
struct FreshStatistics {
  Source source;
  Normalization norm;  // its mean and m2 are not used
  float* stats;
  Running running;  // follows the first shard

  template <int n>
  __device__ void fill(const ChannelPlan& plan, int shard, TileConstants<n, kAffine>& to) const {
    const auto gathered = source.template gather<n>(plan, shard);
    to.fill(plan, [&](int channel, float(&values)[kAffine]) {
      const ShardMoments of = source.of(plan, shard, channel, gathered);
      settle(plan, shard, channel, of, blockIdx.y == 0, values);
    });
  }
  __device__ void settle(const ChannelPlan& plan,
                         int shard,
                         int channel,
                         const ShardMoments& of,
                         bool stores,
                         float (&values)[kAffine]) const {
    const float count = of.images * norm.pixels;
    set_affine(norm, {of.mean, of.m2, count}, channel, values);
    if (!stores) return;
    of.store(plan, shard, channel, stats);
    if (shard == 0 && running.mean != nullptr) running.update(channel, of.mean, of.m2, count);
  }
};

template <class Source>
FreshStatistics<Source> fresh_statistics(const Source& source,
                                         const ChannelPlan& plan,
                                         const BatchNormShardArgs& args) {
  FreshStatistics<Source> statistics{.source = source,
                                     .norm = normalization(plan, args, args.stats),
                                     .stats = args.stats.data<float>(),
                                     .running = {}};
  if (BatchNormRunning* running = args.running; running != nullptr) {
    statistics.running = {
        running->momentum, running->mean.data<float>(), running->var.data<float>()};
  }
  return statistics;
}

}  // namespace
}  // namespace lockstep::kernels::cuda
