// Backward; threads and slices as in batch_norm_cuda.cu, sums in the same fixed order.
// Traffic per element: 2 values for the sums, 3 with GELU, 4 if out is the gate, or 5 with an
// addend; 3 for the gradient. Bound: DRAM; instructions for sums with GELU in 16-bit types.
#include "kernels/norm/batch_norm.cuh"

namespace lockstep::kernels::cuda {
namespace {

using lockstep::cuda::launch;

// The sums of each shard's slices: rows (g[C], gx[C]).
struct SliceSums {
  float* rows = nullptr;
  int most_slices = 0;

  __device__ float* row(int shard, int slice, int64_t channels) const {
    return rows + (int64_t{shard} * most_slices + slice) * 2 * channels;
  }
  __device__ GradientSums<1> node(int shard, int slice, int64_t channels, int channel) const {
    const float* from = row(shard, slice, channels);
    return {{from[channel]}, {from[channels + channel]}};
  }
};

SliceSums slice_sums(Stream& stream, const ChannelPlan& plan) {
  const int slices = plan.most_slices();
  const auto floats = static_cast<size_t>(int64_t{plan.shards.count} * slices * 2 * plan.channels);
  return {reinterpret_cast<float*>(stream.workspace(floats * sizeof(float), 0).shared), slices};
}

// How g is computed from grad_out: gated by a value recomputed from `in`, gated by the sign of
// `out` (also after adding an addend), or multiplied by GELU's slope, recomputed from `in`. Except
// in the first case g is stored to gated_grad.
enum class Source : int { kGradOut, kGatedByOut, kSumGatedByOut, kSlope };

template <class T>
struct SummedTensors {
  const T *in, *grad_out, *addend, *out;
  bool relu;
  T* gated_grad;
};

template <int n>
__device__ __forceinline__ void store_slice(const ChannelPlan& plan,
                                            const ChannelShare& share,
                                            GradientSums<n>& sums,
                                            const SliceSums& found) {
  fold_rows(plan.width, plan.rows_used(share.shard, blockIdx.y), sums);
  const int channel = leading_channel<n>(plan);
  if (channel < 0) return;
  float* row = found.row(share.shard, static_cast<int>(blockIdx.y), plan.channels);
#pragma unroll
  for (int i = 0; i < n; ++i) {
    row[channel + i] = sums.g[i];
    row[plan.channels + channel + i] = sums.gx[i];
  }
}

template <class T, int n, Source kSource>
__global__ void __launch_bounds__(kChannelThreads, 2)
    gradient_sums_kernel(const __grid_constant__ ChannelPlan plan,
                         const Normalization norm,
                         const SummedTensors<T> of,
                         const SliceSums found) {
  __shared__ __align__(16) TileConstants<n, kAffine> constants;
  const ChannelShare share = channel_share<n>(plan);
  constants.fill(plan, [&](int channel, float(&values)[kAffine]) {
    set_affine(norm, norm.of(plan.group(share.shard), channel), channel, values);
  });
  GradientSums<n> sums{};
  const auto take = [&](int i, float centered, float g) {
    sums.g[i] += g;
    sums.gx[i] = __fmaf_rn(g, centered, sums.gx[i]);
  };
  const auto take_and_store = [&](int64_t at, const auto& packs) {
    Pack<T, n> result;
    const auto store = [&](int i, const float(&values)[kAffine]) {
      const float centered = to_float(packs[0][i]) - values[kMean];
      float g = to_float(packs[1][i]);
      if constexpr (kSource == Source::kSlope) {
        g *= gelu_of(affine(centered, values[kScale], values[kBias])).slope;
      } else {
        // Rounds like kernels/elementwise/add.h.
        if constexpr (kSource == Source::kSumGatedByOut) {
          g = to_float(from_float<T>(g + to_float(packs[3][i])));
        }
        g = gated(to_float(packs[2][i]), g);
      }
      take(i, centered, g);
      result[i] = from_float<T>(g);
    };
    constants.for_each(plan, share, store);
    store_pack(of.gated_grad + at, result);
  };
  if constexpr (kSource == Source::kSumGatedByOut) {
    for_packs<n, 1>(share, {of.in, of.grad_out, of.out, of.addend}, take_and_store);
  } else if constexpr (kSource == Source::kGatedByOut) {
    for_packs<n, 2>(share, {of.in, of.grad_out, of.out}, take_and_store);
  } else if constexpr (kSource == Source::kSlope) {
    for_packs<n, 1>(share, {of.in, of.grad_out}, take_and_store);
  } else {
    for_packs<n, 2>(share, {of.in, of.grad_out}, [&](int64_t, const Pack<T, n>(&packs)[2]) {
      constants.for_each(plan, share, [&](int i, const float(&values)[kAffine]) {
        const float centered = to_float(packs[0][i]) - values[kMean];
        const float grad = to_float(packs[1][i]);
        const float gate = affine(centered, values[kScale], values[kBias]);
        take(i, centered, of.relu ? gated(gate, grad) : grad);
      });
    });
  }
  store_slice(plan, share, sums, found);
}

// A channel's leaves of the parameters' gradients.
struct ParameterGradients {
  float weight, bias;
};
__device__ __forceinline__ ParameterGradients parameter_gradients(const GradientSums<1>& joined,
                                                                  float invstd,
                                                                  int slices) {
  return {slices == 0 ? 0.0F : joined.gx[0] * invstd, joined.g[0]};
}

__global__ void __launch_bounds__(kChannelThreads)
    finish_gradient_sums_kernel(const __grid_constant__ ChannelPlan plan,
                                const Normalization norm,
                                const SliceSums found,
                                float* grad_weight,
                                float* grad_bias) {
  const FinishShare share = finish_share(plan);
  GradientSums<1> joined{};
#pragma unroll 4
  for (int k = share.row; k < share.slices; k += kFinishRows) {
    join(joined, found.node(share.shard, k, plan.channels, share.channel));
  }
  fold_rows(kFinishWidth, min(kFinishRows, plan.slices(share.shard)), joined);
  if (share.row > 0 || share.channel >= plan.channels) return;
  const int64_t at = int64_t{share.shard} * plan.channels + share.channel;
  const float invstd = norm.invstd(norm.of(plan.group(share.shard), share.channel));
  const ParameterGradients sums = parameter_gradients(joined, invstd, share.slices);
  grad_weight[at] = sums.weight;
  grad_bias[at] = sums.bias;
}

__device__ __forceinline__ void set_backward(const Normalization& norm,
                                             const Normalization::Channel& of,
                                             int channel,
                                             const ParameterGradients& sums,
                                             float (&constants)[kBackward]) {
  set_affine(norm, of, channel, constants);
  constants[kMeanG] = sums.bias / of.count;
  constants[kSlope] = norm.invstd(of) * (sums.weight / of.count);
}

// Sums of groups, stored in memory as (groups, C).
struct StoredSums {
  Normalization norm;
  const float* grad_weight;
  const float* grad_bias;

  template <int n>
  __device__ void fill(const ChannelPlan& plan, int shard, TileConstants<n, kBackward>& to) const {
    to.fill(plan, [&](int channel, float(&values)[kBackward]) {
      const int64_t group = plan.group(shard);
      const int64_t at = group * plan.channels + channel;
      const ParameterGradients sums{grad_weight[at], grad_bias[at]};
      set_backward(norm, norm.of(group, channel), channel, sums, values);
    });
  }
};

// Computes the sums of groups of one shard from the shard's slices. The first block of a tile
// stores them.
struct FreshSums {
  Normalization norm;
  SliceSums found;
  float* grad_weight;
  float* grad_bias;

  template <int n>
  __device__ void fill(const ChannelPlan& plan, int shard, TileConstants<n, kBackward>& to) const {
    const GradientSums<1> joined = join_slices<n>(plan, shard, [&](int slice, int channel) {
      return found.node(shard, slice, plan.channels, channel);
    });
    to.fill(plan, [&](int channel, float(&values)[kBackward]) {
      const Normalization::Channel of = norm.of(plan.group(shard), channel);
      const ParameterGradients sums =
          parameter_gradients(joined, norm.invstd(of), plan.slices(shard));
      set_backward(norm, of, channel, sums, values);
      if (blockIdx.y > 0) return;
      const int64_t at = int64_t{shard} * plan.channels + channel;
      grad_weight[at] = sums.weight;
      grad_bias[at] = sums.bias;
    });
  }
};

// grad_in = scale * (g - mean_g - (x - mean) * slope). Iterates backward, since the end of the
// shards was read last and is still in L2.
template <class T, int n, class Sums>
__global__ void __launch_bounds__(kChannelThreads, 2)
    input_gradient_kernel(const __grid_constant__ ChannelPlan plan,
                          const Sums sums,
                          const T* in,
                          const T* grad_out,
                          bool relu,
                          T* grad_in) {
  __shared__ __align__(16) TileConstants<n, kBackward> constants;
  const ChannelShare share = channel_share<n>(plan, true);
  sums.fill(plan, share.shard, constants);
  // One pixel at a time: two do not fit the registers of sm_100.
  for_packs<n, 1>(share, {in, grad_out}, [&](int64_t at, const Pack<T, n>(&packs)[2]) {
    Pack<T, n> result;
    constants.for_each(plan, share, [&](int i, const float(&values)[kBackward]) {
      const float centered = to_float(packs[0][i]) - values[kMean];
      const float grad = to_float(packs[1][i]);
      const float gate = affine(centered, values[kScale], values[kBias]);
      const float g = relu ? gated(gate, grad) : grad;
      result[i] = from_float<T>(values[kScale] * (g - values[kMeanG] - centered * values[kSlope]));
    });
    store_pack(grad_in + at, result);
  });
}

void launch_sums(Stream& stream,
                 const char* op,
                 const ChannelPlan& plan,
                 const BatchNormSumsArgs& args,
                 const Tensor& addend,
                 const SliceSums& found) {
  Tensor gated = args.grad_residual != nullptr ? *args.grad_residual : Tensor();
  const auto address = [](const Tensor& tensor) -> const void* {
    return tensor.defined() ? tensor.bytes() : nullptr;
  };
  with_channel_packs(
      plan,
      args.in.dtype(),
      {args.in.bytes(), args.grad_out.bytes(), address(addend), address(args.out), address(gated)},
      [&]<class T, int n>() {
        constexpr int kFew = n < 4 ? n : 4;  // more sums and GELU do not fit the registers
        const bool gelu = args.params.activation == Activation::kGelu;
        const auto kernel = addend.defined() ? gradient_sums_kernel<T, n, Source::kSumGatedByOut>
                            : args.out.defined() ? gradient_sums_kernel<T, n, Source::kGatedByOut>
                            : gelu               ? gradient_sums_kernel<T, kFew, Source::kSlope>
                                                 : gradient_sums_kernel<T, n, Source::kGradOut>;
        launch(stream,
               op,
               {plan.grid(gelu ? kFew : n), kChannelThreads},
               kernel,
               plan,
               normalization(plan, args, args.group_stats),
               SummedTensors<T>{.in = elements<T>(args.in),
                                .grad_out = elements<T>(args.grad_out),
                                .addend = elements<T>(addend),
                                .out = elements<T>(args.out),
                                .relu = args.params.activation == Activation::kRelu,
                                .gated_grad = elements<T>(gated)},
               found);
      });
}

template <class Sums>
void launch_input_gradient(Stream& stream,
                           const char* op,
                           const ChannelPlan& plan,
                           const Sums& sums,
                           const BatchNormBackwardArgs& args) {
  with_channel_packs(plan,
                     args.in.dtype(),
                     {args.in.bytes(), args.grad_out.bytes(), args.grad_in.bytes()},
                     [&]<class T, int n>() {
                       launch(stream,
                              op,
                              {plan.grid(n), kChannelThreads},
                              input_gradient_kernel<T, n, Sums>,
                              plan,
                              sums,
                              elements<T>(args.in),
                              elements<T>(args.grad_out),
                              args.params.activation == Activation::kRelu,
                              elements<T>(args.grad_in));
                     });
}

}  // namespace

void batch_norm_shard_sums(Stream& stream, const Shards& shards, const BatchNormSumsArgs& args) {
  constexpr const char* kOp = "batch_norm_shard_sums";
  const ChannelPlan plan = channel_plan(shards, args.in);
  const SliceSums found = slice_sums(stream, plan);
  launch_sums(stream, kOp, plan, args, {}, found);
  launch(stream,
         kOp,
         finish_shape(plan),
         finish_gradient_sums_kernel,
         plan,
         normalization(plan, args, args.group_stats),
         found,
         args.grad_weight.data<float>(),
         args.grad_bias.data<float>());
}

void batch_norm_backward(Stream& stream, const Shards& shards, const BatchNormBackwardArgs& args) {
  const ChannelPlan plan = channel_plan(shards, args.in);
  const StoredSums sums{.norm = normalization(plan, args, args.group_stats),
                        .grad_weight = args.group_grad_weight.data<float>(),
                        .grad_bias = args.group_grad_bias.data<float>()};
  launch_input_gradient(stream, "batch_norm_backward", plan, sums, args);
}

void batch_norm_shard_backward(Stream& stream,
                               const Shards& shards,
                               const BatchNormSumsArgs& args,
                               const Tensor& addend,
                               Tensor& grad_in) {
  constexpr const char* kOp = "batch_norm_shard_backward";
  const ChannelPlan plan = channel_plan(shards, args.in);
  const FreshSums sums{.norm = normalization(plan, args, args.group_stats),
                       .found = slice_sums(stream, plan),
                       .grad_weight = args.grad_weight.data<float>(),
                       .grad_bias = args.grad_bias.data<float>()};
  launch_sums(stream, kOp, plan, args, addend, sums.found);
  launch_input_gradient(stream, kOp, plan, sums, backward_args(args, grad_in));
}

}  // namespace lockstep::kernels::cuda
