// Small kernels between the passes. merge_stats: one thread per channel and pair of leaves.
// update_running: one thread per channel. shard_affine: one thread per channel of a shard, which
// turns a convolution's sums into scales and shifts for the next convolution. Bound: latency.
#include "kernels/norm/batch_norm_statistics.cuh"

namespace lockstep::kernels::cuda {
namespace {

using lockstep::cuda::blocks_for;
using lockstep::cuda::launch;

constexpr int kMergeWidth = 32;
constexpr int kMergeRows = 8;
constexpr int kMergeThreads = kMergeWidth * kMergeRows;

// Merges by core/tree.h's tree. nodes: one per leaf and channel, with counts in images.
__global__ void __launch_bounds__(kMergeThreads) merge_stats_kernel(const float* leaves,
                                                                    int64_t count,
                                                                    int64_t channels,
                                                                    float pixels,
                                                                    Moments<1>* nodes,
                                                                    float* merged) {
  const int64_t channel = int64_t{blockIdx.x} * kMergeWidth + threadIdx.x;
  const int64_t columns = 2 * channels + 1;
  const bool active = channel < channels;
  for (int64_t k = threadIdx.y; k < count && active; k += kMergeRows) {
    const float* leaf = leaves + k * columns;
    nodes[k * channels + channel] = {
        leaf[2 * channels], {leaf[channel]}, {leaf[channels + channel]}};
  }
  for (int64_t stride = 1; stride < count; stride *= 2) {
    __syncthreads();
    for (int64_t into = 2 * stride * threadIdx.y; into + stride < count && active;
         into += 2 * stride * kMergeRows) {
      join(nodes[into * channels + channel], nodes[(into + stride) * channels + channel], pixels);
    }
  }
  if (threadIdx.y > 0 || !active) return;  // row 0 has merged the root
  const Moments<1> root = nodes[channel];
  merged[channel] = root.mean[0];
  merged[channels + channel] = root.m2[0];
  if (channel == 0) merged[2 * channels] = root.count;
}

__global__ void __launch_bounds__(kChannelThreads) update_running_kernel(const float* stats,
                                                                         int64_t channels,
                                                                         float pixels,
                                                                         const Running running) {
  const int64_t c = int64_t{blockIdx.x} * kChannelThreads + threadIdx.x;
  if (c >= channels) return;
  running.update(static_cast<int>(c), stats[c], stats[channels + c], stats[2 * channels] * pixels);
}

// One thread per channel of a shard. Bound: latency.
template <class T>
__global__ void __launch_bounds__(kChannelThreads)
    affine_kernel(const __grid_constant__ ChannelPlan plan,
                  const FreshStatistics<FromSums> statistics,
                  T* affine) {
  const int channel = static_cast<int>(blockIdx.x * kChannelThreads + threadIdx.x);
  const int shard = static_cast<int>(blockIdx.y);
  if (channel >= plan.channels) return;
  float values[kAffine];
  statistics.settle(plan, shard, channel, statistics.source.of(plan, shard, channel), true, values);
  const T scale = from_float<T>(values[kScale]);
  T* to = affine + int64_t{shard} * plan.channels + channel;
  *to = scale;
  to[int64_t{plan.shards.count} * plan.channels] =
      from_float<T>(__fmaf_rn(-values[kMean], to_float(scale), values[kBias]));
}

}  // namespace

void batch_norm_merge_stats(Stream& stream, const Tensor& leaves, int64_t pixels, Tensor& merged) {
  const int64_t count = leaves.shape()[0];
  const int64_t channels = merged.numel() / 2;
  auto* nodes = reinterpret_cast<Moments<1>*>(
      stream.workspace(static_cast<size_t>(count * channels) * sizeof(Moments<1>), 0).shared);
  launch(stream,
         "batch_norm_merge_stats",
         {blocks_for(channels, kMergeWidth), {kMergeWidth, kMergeRows}},
         merge_stats_kernel,
         leaves.data<float>(),
         count,
         channels,
         static_cast<float>(pixels),
         nodes,
         merged.data<float>());
}

void batch_norm_update_running(Stream& stream,
                               const Tensor& stats,
                               int64_t pixels,
                               float momentum,
                               Tensor& running_mean,
                               Tensor& running_var) {
  launch(stream,
         "batch_norm_update_running",
         {blocks_for(running_mean.numel(), kChannelThreads), kChannelThreads},
         update_running_kernel,
         stats.data<float>(),
         running_mean.numel(),
         static_cast<float>(pixels),
         Running{momentum, running_mean.data<float>(), running_var.data<float>()});
}

void batch_norm_shard_affine(Stream& stream,
                             const Shards& shards,
                             const BatchNormShardArgs& args,
                             Tensor& affine) {
  const ChannelPlan plan = channel_plan(shards, args.in);
  with_float_type(affine.dtype(), [&]<class T>() {
    lockstep::cuda::launch(stream,
                           "batch_norm_shard_affine",
                           {{lockstep::cuda::blocks_for(plan.channels, kChannelThreads),
                             static_cast<unsigned>(plan.shards.count)},
                            kChannelThreads},
                           affine_kernel<T>,
                           plan,
                           fresh_statistics(FromSums{args.sums.data<float>()}, plan, args),
                           elements<T>(affine));
  });
}

}  // namespace lockstep::kernels::cuda
