// Computes statistics, and normalizes with them or with the running ones. A thread has the 8 (f32:
// 4) channels of a 16-byte pack, with their constants in registers; a block has some of the pixels
// of a shard (kernels/norm/channels.cuh). A thread sums differences from its own first value. Then
// the results of threads, and after them those of slices, are joined by Chan's formula in a fixed
// order, with means relative to the shard's first pixel. Since both origins are values of the data,
// no digits are lost if mean >> deviation, or if an origin is an outlier.
// Slices are joined by a second kernel or, if a shard is a group, by each block that normalizes,
// for the channels of its tile: this saves a launch and reads at most 36 MB in all from L2.
// Traffic per element: 1 value for statistics; 2 for normalizing, 3 with a residual. Bound: DRAM;
// instructions with GELU in 16-bit types.
#include "kernels/norm/batch_norm_statistics.cuh"

namespace lockstep::kernels::cuda {
namespace {

using lockstep::cuda::launch;

SliceMoments slice_moments(Stream& stream, const ChannelPlan& plan) {
  const int64_t rows = plan.shards.count * plan.most_slices();
  const int64_t row_floats = rows * (2 * int64_t{plan.channels} + 1);
  const int64_t floats = row_floats + int64_t{plan.shards.count} * plan.channels;
  auto* memory = reinterpret_cast<float*>(
      stream.workspace(static_cast<size_t>(floats) * sizeof(float), 0).shared);
  return {memory, memory + row_floats, plan.most_slices()};
}

template <class T, int n>
__global__ void __launch_bounds__(kChannelThreads, 2)
    moments_kernel(const __grid_constant__ ChannelPlan plan,
                   const T* in,
                   const SliceMoments found) {
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
  float* row = found.row(shard, static_cast<int>(blockIdx.y), plan.channels);
#pragma unroll
  for (int i = 0; i < n; ++i) {
    row[channel + i] = moments.mean[i];
    row[plan.channels + channel + i] = moments.m2[i];
  }
  if (channel == 0) row[2 * plan.channels] = moments.count;
  if (blockIdx.y > 0 || share.count == 0) return;
  float* origin = found.origins + int64_t{shard} * plan.channels + channel;
#pragma unroll
  for (int i = 0; i < n; ++i) origin[i] = shift[i];
}

__global__ void __launch_bounds__(kChannelThreads)
    finish_moments_kernel(const __grid_constant__ ChannelPlan plan,
                          const SliceMoments found,
                          float* stats) {
  const FinishShare share = finish_share(plan);
  Moments<1> joined{};
#pragma unroll 4
  for (int k = share.row; k < share.slices; k += kFinishRows) {
    join(joined, found.node(share.shard, k, plan.channels, share.channel));
  }
  fold_rows(kFinishWidth, min(kFinishRows, plan.slices(share.shard)), joined);
  if (share.row > 0 || share.channel >= plan.channels) return;
  shard_moments(plan, found, share.shard, share.channel, joined)
      .store(plan, share.shard, share.channel, stats);
}

// What follows normalization: ReLU or nothing, the same after adding a residual, or GELU.
enum class Tail : int { kOptionalRelu, kResidual, kGelu };

// Iterates backward, since the end of the shards was read last and is still in L2.
template <class T, int n, Tail kTail, class Statistics>
__global__ void __launch_bounds__(kChannelThreads, 2)
    normalize_kernel(const __grid_constant__ ChannelPlan plan,
                     const Statistics statistics,
                     const T* in,
                     const T* residual,
                     bool relu,
                     T* out) {
  __shared__ __align__(16) TileConstants<n, kAffine> constants;
  const ChannelShare share = channel_share<n>(plan, true);
  statistics.fill(plan, share.shard, constants);
  if (share.count == 0) return;
  if constexpr (kTail == Tail::kGelu) {  // its constants and the channels' do not fit the registers
    for_packs<n, 2>(share, {in}, [&](int64_t at, const Pack<T, n>(&packs)[1]) {
      Pack<T, n> result;
      constants.for_each(plan, share, [&](int i, const float(&values)[kAffine]) {
        const float centered = to_float(packs[0][i]) - values[kMean];
        const float y = affine(centered, values[kScale], values[kBias]);
        result[i] = from_float<T>(y * gelu_of(y).value);
      });
      store_pack(out + at, result);
    });
    return;
  }
  float mean[n], scale[n], bias[n];
  constants.for_each(plan, share, [&](int i, const float(&values)[kAffine]) {
    mean[i] = values[kMean];
    scale[i] = values[kScale];
    bias[i] = values[kBias];
  });
  const auto finish = [&](int64_t at, const auto& packs) {
    Pack<T, n> result;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      float y = affine(to_float(packs[0][i]) - mean[i], scale[i], bias[i]);
      if constexpr (kTail == Tail::kResidual) y += to_float(packs[1][i]);
      result[i] = from_float<T>(relu ? gated(y, y) : y);
    }
    store_pack(out + at, result);
  };
  if constexpr (kTail == Tail::kResidual) {
    for_packs<n, 2>(share, {in, residual}, finish);
  } else {
    for_packs<n, 4>(share, {in}, finish);
  }
}

// `args`: those of forward or inference.
template <class Statistics, class Args>
void normalize(Stream& stream,
               const char* op,
               const ChannelPlan& plan,
               const Statistics& statistics,
               const Args& args) {
  const Tensor& residual = args.residual;
  const void* added = residual.defined() ? residual.bytes() : nullptr;
  with_channel_packs(
      plan, args.in.dtype(), {args.in.bytes(), added, args.out.bytes()}, [&]<class T, int n>() {
        const Activation activation = args.params.activation;
        launch(stream,
               op,
               {plan.grid(n), kChannelThreads},
               activation == Activation::kGelu ? normalize_kernel<T, n, Tail::kGelu, Statistics>
               : residual.defined()            ? normalize_kernel<T, n, Tail::kResidual, Statistics>
                                    : normalize_kernel<T, n, Tail::kOptionalRelu, Statistics>,
               plan,
               statistics,
               elements<T>(args.in),
               elements<T>(residual),
               activation == Activation::kRelu,
               elements<T>(args.out));
      });
}

void launch_moments(Stream& stream,
                    const char* op,
                    const ChannelPlan& plan,
                    const Tensor& in,
                    const SliceMoments& found) {
  with_channel_packs(plan, in.dtype(), {in.bytes()}, [&]<class T, int n>() {
    launch(stream,
           op,
           {plan.grid(n), kChannelThreads},
           moments_kernel<T, n>,
           plan,
           elements<T>(in),
           found);
  });
}

}  // namespace

void batch_norm_shard_stats(Stream& stream, const Shards& shards, const Tensor& in, Tensor& stats) {
  const ChannelPlan plan = channel_plan(shards, in);
  const SliceMoments found = slice_moments(stream, plan);
  launch_moments(stream, "batch_norm_shard_stats", plan, in, found);
  launch(stream,
         "batch_norm_shard_stats",
         finish_shape(plan),
         finish_moments_kernel,
         plan,
         found,
         stats.data<float>());
}

void batch_norm_shard_forward(Stream& stream,
                              const Shards& shards,
                              const BatchNormShardArgs& args,
                              const Tensor& residual,
                              Tensor& out) {
  constexpr const char* kOp = "batch_norm_shard_forward";
  const ChannelPlan plan = channel_plan(shards, args.in);
  const BatchNormForwardArgs forward = forward_args(args, residual, out);
  if (args.sums.defined()) {
    const FromSums sums{args.sums.data<float>()};
    normalize(stream, kOp, plan, fresh_statistics(sums, plan, args), forward);
    return;
  }
  const SliceMoments found = slice_moments(stream, plan);
  launch_moments(stream, kOp, plan, args.in, found);
  normalize(stream, kOp, plan, fresh_statistics(FromSlices{found}, plan, args), forward);
}

void batch_norm_forward(Stream& stream, const Shards& shards, const BatchNormForwardArgs& args) {
  const ChannelPlan plan = channel_plan(shards, args.in);
  const StoredStatistics statistics{normalization(plan, args, args.group_stats)};
  normalize(stream, "batch_norm_forward", plan, statistics, args);
}

void batch_norm_inference(Stream& stream,
                          const Shards& shards,
                          const BatchNormInferenceArgs& args) {
  const StoredStatistics statistics{{.mean = args.running_mean.data<float>(),
                                     .m2 = args.running_var.data<float>(),
                                     .weight = args.weight.data<float>(),
                                     .bias = args.bias.data<float>(),
                                     .eps = args.params.eps}};
  normalize(stream, "batch_norm_inference", channel_plan(shards, args.in), statistics, args);
}

}  // namespace lockstep::kernels::cuda
