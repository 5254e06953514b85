// Backward; threads and slices as in batch_norm_stats_cuda.cu, sums in the same fixed order.
// Traffic an element: sums 2 values, where out is the gate 4; gradient 3. Bound: DRAM.
#include "kernels/cuda/batch_norm.cuh"

namespace lockstep::kernels::cuda {
namespace {

using lockstep::cuda::launch;

// Of g, and of g * (x - mean).
template <int n>
struct GradientSums {
  float g[n];
  float gx[n];
};
template <int n>
__device__ __forceinline__ void join(GradientSums<n>& into, const GradientSums<n>& from) {
#pragma unroll
  for (int i = 0; i < n; ++i) {
    into.g[i] += from.g[i];
    into.gx[i] += from.gx[i];
  }
}

// partials: rows (g[C], gx[C]), one for each slice of each shard. kGated: the sign of `out` is the
// gate, g goes to gated_grad.
template <class T, int n, bool kGated>
__global__ void __launch_bounds__(kChannelThreads, 4)
    gradient_sums_kernel(const __grid_constant__ ChannelPlan plan,
                         const Normalisation norm,
                         const T* in,
                         const T* grad_out,
                         const T* out,
                         bool relu,
                         T* gated_grad,
                         float* partials) {
  __shared__ __align__(16) TileConstants<n, kAffine> constants;
  const ChannelShare share = channel_share<n>(plan);
  constants.fill(plan, [&](int channel, float(&values)[kAffine]) {
    set_affine(norm, plan.group(share.shard), channel, values);
  });
  GradientSums<n> sums{};
  const auto take = [&](int i, float centred, float g) {
    sums.g[i] += g;
    sums.gx[i] = __fmaf_rn(g, centred, sums.gx[i]);
  };
  if constexpr (kGated) {
    for_packs<n, 2>(share, {in, grad_out, out}, [&](int64_t at, const Pack<T, n>(&packs)[3]) {
      Pack<T, n> result;
      constants.for_each(plan, share, [&](int i, const float(&values)[kAffine]) {
        const float g = gated(to_float(packs[2][i]), to_float(packs[1][i]));
        take(i, to_float(packs[0][i]) - values[kMean], g);
        result[i] = from_float<T>(g);
      });
      store_pack(gated_grad + at, result);
    });
  } else {
    for_packs<n, 2>(share, {in, grad_out}, [&](int64_t, const Pack<T, n>(&packs)[2]) {
      constants.for_each(plan, share, [&](int i, const float(&values)[kAffine]) {
        const float centred = to_float(packs[0][i]) - values[kMean];
        const float grad = to_float(packs[1][i]);
        const float gate = affine(centred, values[kScale], values[kBias]);
        take(i, centred, relu ? gated(gate, grad) : grad);
      });
    });
  }
  fold_rows(plan.width, plan.rows_used(share.shard, blockIdx.y), sums);
  const int channel = leading_channel<n>(plan);
  if (channel < 0) return;
  float* row = partials + (int64_t{blockIdx.z} * gridDim.y + blockIdx.y) * 2 * plan.channels;
#pragma unroll
  for (int i = 0; i < n; ++i) {
    row[channel + i] = sums.g[i];
    row[plan.channels + channel + i] = sums.gx[i];
  }
}

__global__ void __launch_bounds__(kChannelThreads)
    finish_gradient_sums_kernel(const __grid_constant__ ChannelPlan plan,
                                const Normalisation norm,
                                int most_slices,
                                const float* partials,
                                float* grad_weight,
                                float* grad_bias) {
  const FinishShare share = finish_share(plan);
  const int64_t columns = 2 * int64_t{plan.channels};
  const float* slice = partials + (int64_t{share.shard} * most_slices + share.row) * columns;
  GradientSums<1> sums{};
#pragma unroll 4
  for (int k = share.row; k < share.slices; k += kFinishRows, slice += kFinishRows * columns) {
    join(sums, {{slice[share.channel]}, {slice[plan.channels + share.channel]}});
  }
  fold_rows(kFinishWidth, min(kFinishRows, plan.slices(share.shard)), sums);
  if (share.row > 0 || share.channel >= plan.channels) return;
  const int64_t at = int64_t{share.shard} * plan.channels + share.channel;
  const float invstd = norm.invstd(plan.group(share.shard), share.channel);
  grad_bias[at] = sums.g[0];
  grad_weight[at] = share.slices == 0 ? 0.0F : sums.gx[0] * invstd;
}

// (groups, C).
struct GroupSums {
  const float* grad_weight;
  const float* grad_bias;
};

// grad_in = scale * (g - mean_g - (x - mean) * slope). Backwards over the shards: the sums ended
// there.
template <class T, int n>
__global__ void __launch_bounds__(kChannelThreads, 4)
    input_gradient_kernel(const __grid_constant__ ChannelPlan plan,
                          const Normalisation norm,
                          const GroupSums sums,
                          const T* in,
                          const T* grad_out,
                          bool relu,
                          T* grad_in) {
  __shared__ __align__(16) TileConstants<n, kBackward> constants;
  const ChannelShare share = channel_share<n>(plan, true);
  constants.fill(plan, [&](int channel, float(&values)[kBackward]) {
    const int64_t group = plan.group(share.shard);
    const int64_t at = group * plan.channels + channel;
    set_affine(norm, group, channel, values);
    values[kMeanG] = sums.grad_bias[at] / norm.count(group);
    values[kSlope] = norm.invstd(group, channel) * (sums.grad_weight[at] / norm.count(group));
  });
  // One pixel at a time: two do not fit the registers of sm_100.
  for_packs<n, 1>(share, {in, grad_out}, [&](int64_t at, const Pack<T, n>(&packs)[2]) {
    Pack<T, n> result;
    constants.for_each(plan, share, [&](int i, const float(&values)[kBackward]) {
      const float centred = to_float(packs[0][i]) - values[kMean];
      const float grad = to_float(packs[1][i]);
      const float gate = affine(centred, values[kScale], values[kBias]);
      const float g = relu ? gated(gate, grad) : grad;
      result[i] = from_float<T>(values[kScale] * (g - values[kMeanG] - centred * values[kSlope]));
    });
    store_pack(grad_in + at, result);
  });
}

}  // namespace

void batch_norm_shard_sums(Stream& stream,
                           const Shards& shards,
                           const Tensor& in,
                           const Tensor& out,
                           const Tensor& grad_out,
                           const Tensor& group_stats,
                           const Tensor& weight,
                           const Tensor& bias,
                           const BatchNormParams& params,
                           Tensor& grad_residual,
                           Tensor& grad_weight,
                           Tensor& grad_bias) {
  const ChannelPlan plan = channel_plan(shards, in);
  const Normalisation norm = group_normalisation(plan, group_stats, weight, bias, params.eps);
  const int slices = plan.most_slices();
  const auto floats = static_cast<size_t>(shards.local() * slices * 2 * plan.channels);
  auto* partials = reinterpret_cast<float*>(stream.workspace(floats * sizeof(float), 0).shared);
  const bool gate = out.defined();
  with_channel_packs(
      plan,
      in.dtype(),
      {in.bytes(),
       grad_out.bytes(),
       gate ? out.bytes() : nullptr,
       gate ? grad_residual.bytes() : nullptr},
      [&]<class T, int n>() {
        launch(stream,
               "batch_norm_shard_sums",
               {plan.grid(n), kChannelThreads},
               gate ? gradient_sums_kernel<T, n, true> : gradient_sums_kernel<T, n, false>,
               plan,
               norm,
               elements<T>(in),
               elements<T>(grad_out),
               elements<T>(out),
               params.relu,
               elements<T>(grad_residual),
               partials);
      });
  launch(stream,
         "batch_norm_shard_sums",
         finish_shape(plan),
         finish_gradient_sums_kernel,
         plan,
         norm,
         slices,
         partials,
         grad_weight.data<float>(),
         grad_bias.data<float>());
}

void batch_norm_backward(Stream& stream,
                         const Shards& shards,
                         const Tensor& in,
                         const Tensor& grad_out,
                         const Tensor& group_stats,
                         const Tensor& group_grad_weight,
                         const Tensor& group_grad_bias,
                         const Tensor& weight,
                         const Tensor& bias,
                         const BatchNormParams& params,
                         Tensor& grad_in) {
  const ChannelPlan plan = channel_plan(shards, in);
  const Normalisation norm = group_normalisation(plan, group_stats, weight, bias, params.eps);
  const GroupSums sums{group_grad_weight.data<float>(), group_grad_bias.data<float>()};
  with_channel_packs(
      plan, in.dtype(), {in.bytes(), grad_out.bytes(), grad_in.bytes()}, [&]<class T, int n>() {
        launch(stream,
               "batch_norm_backward",
               {plan.grid(n), kChannelThreads},
               input_gradient_kernel<T, n>,
               plan,
               norm,
               sums,
               elements<T>(in),
               elements<T>(grad_out),
               params.relu,
               elements<T>(grad_in));
      });
}

}  // namespace lockstep::kernels::cuda
