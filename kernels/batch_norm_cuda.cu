// Normalising, with the statistics of batch_norm_stats_cuda.cu or the running ones. A thread owns
// the channels of a pack, their constants in registers.
// Traffic an element: 2 values, with a residual 3. Bound: DRAM.
#include "kernels/cuda/batch_norm.cuh"

namespace lockstep::kernels::cuda {
namespace {

using lockstep::cuda::launch;

// Backwards over the shards: the statistics ended there.
template <class T, int n, bool kResidual>
__global__ void __launch_bounds__(kChannelThreads, 4)
    normalise_kernel(const __grid_constant__ ChannelPlan plan,
                     const Normalisation norm,
                     const T* in,
                     const T* residual,
                     bool relu,
                     T* out) {
  __shared__ __align__(16) TileConstants<n, kAffine> constants;
  const ChannelShare share = channel_share<n>(plan, true);
  constants.fill(plan, [&](int channel, float(&values)[kAffine]) {
    set_affine(norm, plan.group(share.shard), channel, values);
  });
  if (share.count == 0) return;
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
      if constexpr (kResidual) y += to_float(packs[1][i]);
      result[i] = from_float<T>(relu ? gated(y, y) : y);
    }
    store_pack(out + at, result);
  };
  if constexpr (kResidual) {
    for_packs<n, 2>(share, {in, residual}, finish);
  } else {
    for_packs<n, 4>(share, {in}, finish);
  }
}

void normalise(Stream& stream,
               const ChannelPlan& plan,
               const Normalisation& norm,
               const Tensor& in,
               const Tensor& residual,
               bool relu,
               Tensor& out) {
  const auto address = [](const Tensor& tensor) -> const void* {
    return tensor.defined() ? tensor.bytes() : nullptr;
  };
  with_channel_packs(
      plan, in.dtype(), {in.bytes(), address(residual), out.bytes()}, [&]<class T, int n>() {
        launch(stream,
               "batch_norm_forward",
               {plan.grid(n), kChannelThreads},
               residual.defined() ? normalise_kernel<T, n, true> : normalise_kernel<T, n, false>,
               plan,
               norm,
               elements<T>(in),
               elements<T>(residual),
               relu,
               elements<T>(out));
      });
}

}  // namespace

void batch_norm_forward(Stream& stream,
                        const Shards& shards,
                        const Tensor& in,
                        const Tensor& group_stats,
                        const Tensor& weight,
                        const Tensor& bias,
                        const Tensor& residual,
                        const BatchNormParams& params,
                        Tensor& out) {
  const ChannelPlan plan = channel_plan(shards, in);
  const Normalisation norm = group_normalisation(plan, group_stats, weight, bias, params.eps);
  normalise(stream, plan, norm, in, residual, params.relu, out);
}

void batch_norm_inference(Stream& stream,
                          const Shards& shards,
                          const Tensor& in,
                          const Tensor& running_mean,
                          const Tensor& running_var,
                          const Tensor& weight,
                          const Tensor& bias,
                          const Tensor& residual,
                          const BatchNormParams& params,
                          Tensor& out) {
  const Normalisation norm{.mean = running_mean.data<float>(),
                           .m2 = running_var.data<float>(),
                           .weight = weight.data<float>(),
                           .bias = bias.data<float>(),
                           .eps = params.eps};
  normalise(stream, channel_plan(shards, in), norm, in, residual, params.relu, out);
}

}  // namespace lockstep::kernels::cuda
