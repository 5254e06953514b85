// Sums of a convolution to the scales and shifts that the next one takes in.
#include "kernels/norm/batch_norm_statistics.cuh"

namespace lockstep::kernels::cuda {
namespace {

// One thread a channel of a shard. Bound: latency.
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
