// Statistics. A thread owns the 8 (f32: 4) channels of a 16-byte pack, a block some of the pixels
// of a shard (kernels/cuda/channels.cuh). A thread sums about its own first value; then threads,
// and in a second kernel slices, are joined by Chan's formula in a fixed order, their means
// relative to the shard's first pixel. Both origins are among the values that they serve, so no
// digits are lost where mean >> deviation, or where an origin is an outlier.
// Traffic an element: 1 value. Bound: DRAM.
// merge_stats: a thread a channel and a pair of leaves; update_running: a channel. Bound: latency.
#include "kernels/cuda/batch_norm.cuh"

namespace lockstep::kernels::cuda {
namespace {

using lockstep::cuda::blocks_for;
using lockstep::cuda::launch;

// partials: a row (mean[C], M2[C], count) for each slice of each shard, means relative to origins
// (shards, C).
template <class T, int n>
__global__ void __launch_bounds__(kChannelThreads, 4) moments_kernel(
    const __grid_constant__ ChannelPlan plan, const T* in, float* partials, float* origins) {
  const ChannelShare share = channel_share<n>(plan);
  float shift[n] = {};
  if (share.count > 0) {
    const Pack<T, n> first = load_pack<n>(in + share.first);
#pragma unroll
    for (int i = 0; i < n; ++i) shift[i] = to_float(first[i]);
  }
  float sum[n] = {};
  float squares[n] = {};
  for_packs<n, 4>(share, {in}, [&](int64_t, const Pack<T, n>(&packs)[1]) {
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float deviation = to_float(packs[0][i]) - shift[i];
      sum[i] += deviation;
      squares[i] = __fmaf_rn(deviation, deviation, squares[i]);
    }
  });
  const int shard = static_cast<int>(blockIdx.z);
  const T* first_pixel = in + plan.shards.begin[shard] * plan.image_pixels * plan.channels;
  Moments<n> moments{};
  if (share.count > 0) {
    const Pack<T, n> origin = load_pack<n>(first_pixel + first_channel<n>(plan, share.column));
    moments.count = static_cast<float>(share.count);
    const float each = 1.0F / moments.count;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float offset = sum[i] * each;
      const float m2 = squares[i] - sum[i] * offset;
      moments.mean[i] = (shift[i] - to_float(origin[i])) + offset;
      moments.m2[i] = m2 < 0 ? 0.0F : m2;  // rounding; NaN stays
    }
  }
  fold_rows(plan.width, plan.rows_used(shard, blockIdx.y), moments);
  const int channel = leading_channel<n>(plan);
  if (channel < 0) return;
  const int64_t columns = 2 * int64_t{plan.channels} + 1;
  float* row = partials + (int64_t{blockIdx.z} * gridDim.y + blockIdx.y) * columns;
#pragma unroll
  for (int i = 0; i < n; ++i) {
    row[channel + i] = moments.mean[i];
    row[plan.channels + channel + i] = moments.m2[i];
  }
  if (channel == 0) row[columns - 1] = moments.count;
  if (blockIdx.y > 0 || share.count == 0) return;
  float* origin = origins + int64_t{shard} * plan.channels + channel;
#pragma unroll
  for (int i = 0; i < n; ++i) origin[i] = shift[i];
}

__global__ void __launch_bounds__(kChannelThreads)
    finish_moments_kernel(const __grid_constant__ ChannelPlan plan,
                          int most_slices,
                          const float* partials,
                          const float* origins,
                          float* stats) {
  const FinishShare share = finish_share(plan);
  const int64_t columns = 2 * int64_t{plan.channels} + 1;
  const float* slice = partials + (int64_t{share.shard} * most_slices + share.row) * columns;
  Moments<1> moments{};
#pragma unroll 4
  for (int k = share.row; k < share.slices; k += kFinishRows, slice += kFinishRows * columns) {
    join(moments,
         {slice[columns - 1], {slice[share.channel]}, {slice[plan.channels + share.channel]}});
  }
  fold_rows(kFinishWidth, min(kFinishRows, plan.slices(share.shard)), moments);
  if (share.row > 0 || share.channel >= plan.channels) return;
  const int64_t images = plan.shards.begin[share.shard + 1] - plan.shards.begin[share.shard];
  const float origin =
      images > 0 ? origins[int64_t{share.shard} * plan.channels + share.channel] : 0.0F;
  float* leaf = stats + share.shard * columns;
  leaf[share.channel] = origin + moments.mean[0];
  leaf[plan.channels + share.channel] = moments.m2[0];
  if (share.channel == 0) leaf[columns - 1] = static_cast<float>(images);
}

constexpr int kMergeWidth = 32;
constexpr int kMergeRows = 8;
constexpr int kMergeThreads = kMergeWidth * kMergeRows;

// core/tree.h's tree. nodes: one for each leaf and channel, its count in images.
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
                                                                         float momentum,
                                                                         float* running_mean,
                                                                         float* running_var) {
  const int64_t c = int64_t{blockIdx.x} * kChannelThreads + threadIdx.x;
  if (c >= channels) return;
  const float count = stats[2 * channels] * pixels;
  const float keep = 1.0F - momentum;
  const float variance = stats[channels + c] / (count - 1.0F);
  running_mean[c] = keep * running_mean[c] + momentum * stats[c];
  running_var[c] = count >= 2 ? keep * running_var[c] + momentum * variance : NAN;
}

}  // namespace

void batch_norm_shard_stats(Stream& stream, const Shards& shards, const Tensor& in, Tensor& stats) {
  const ChannelPlan plan = channel_plan(shards, in);
  const int slices = plan.most_slices();
  const int64_t partial_floats = shards.local() * slices * stats.shape()[1];
  const int64_t floats = partial_floats + shards.local() * plan.channels;
  auto* partials = reinterpret_cast<float*>(
      stream.workspace(static_cast<size_t>(floats) * sizeof(float), 0).shared);
  float* origins = partials + partial_floats;
  with_channel_packs(plan, in.dtype(), {in.bytes()}, [&]<class T, int n>() {
    launch(stream,
           "batch_norm_shard_stats",
           {plan.grid(n), kChannelThreads},
           moments_kernel<T, n>,
           plan,
           elements<T>(in),
           partials,
           origins);
  });
  launch(stream,
         "batch_norm_shard_stats",
         finish_shape(plan),
         finish_moments_kernel,
         plan,
         slices,
         partials,
         origins,
         stats.data<float>());
}

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
         momentum,
         running_mean.data<float>(),
         running_var.data<float>());
}

}  // namespace lockstep::kernels::cuda
