// Code that the forward and backward kernels of batch norm share.
#pragma once

#include <cmath>

#include "kernels/elementwise/gelu_rule.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/norm/channels.cuh"

namespace lockstep::kernels::cuda {
namespace {

// The second of two stages combines the results of a shard's slices. A block takes a few channels,
// whose values fill a sector of memory; each of its rows takes every kFinishRows-th slice.
constexpr int kFinishWidth = 8;
constexpr int kFinishRows = kChannelThreads / kFinishWidth;

struct FinishShare {
  int shard;
  int row;
  int channel;
  int slices;  // slices of the shard; 0 for a thread without a channel
};

__device__ __forceinline__ FinishShare finish_share(const ChannelPlan& plan) {
  const int thread = static_cast<int>(threadIdx.x);
  FinishShare share{};
  share.shard = static_cast<int>(blockIdx.y);
  share.row = thread / kFinishWidth;
  share.channel = static_cast<int>(blockIdx.x) * kFinishWidth + thread % kFinishWidth;
  share.slices = share.channel < plan.channels ? plan.slices(share.shard) : 0;
  return share;
}

inline lockstep::cuda::LaunchShape finish_shape(const ChannelPlan& plan) {
  return {{lockstep::cuda::blocks_for(plan.channels, kFinishWidth),
           static_cast<unsigned>(plan.shards.count)},
          kChannelThreads};
}

// Statistics of n channels over `count` values each.
template <int n>
struct Moments {
  float count;
  float mean[n];
  float m2[n];
};

// Sums of g and of g * (x - mean).
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

// Chan's formula: `into` becomes the moments of both. Each unit of `count` stands for `each`
// values.
template <int n>
__device__ __forceinline__ void join(Moments<n>& into, const Moments<n>& from, float each = 1) {
  if (from.count == 0) return;
  if (into.count == 0) {
    into = from;
    return;
  }
  const float count = into.count + from.count;
  const float share = from.count / count;
  const float weight = into.count * share * each;
#pragma unroll
  for (int i = 0; i < n; ++i) {
    const float delta = from.mean[i] - into.mean[i];
    into.mean[i] += delta * share;
    into.m2[i] = into.m2[i] + from.m2[i] + delta * delta * weight;
  }
  into.count = count;
}

// The statistics by which each channel of each group is normalized.
struct Normalization {
  const float* mean = nullptr;  // (groups, group_floats)
  const float* m2 = nullptr;
  const float* images = nullptr;  // null: m2 is the variance
  int64_t group_floats = 0;
  float pixels = 1;
  const float* weight = nullptr;
  const float* bias = nullptr;
  float eps = 0;

  struct Channel {
    float mean, m2, count;
  };

  __device__ float count(int64_t group) const {
    return images == nullptr ? 1.0F : images[group * group_floats] * pixels;
  }
  __device__ Channel of(int64_t group, int c) const {
    return {mean[group * group_floats + c], m2[group * group_floats + c], count(group)};
  }
  __device__ float invstd(const Channel& channel) const {
    return 1.0F / sqrtf(channel.m2 / channel.count + eps);
  }
};

// Makes a Normalization from the groups' statistics and the weight, bias and params of `args`.
template <class Args>
Normalization normalization(const ChannelPlan& plan, const Args& args, const Tensor& group_stats) {
  const float* rows = group_stats.data<float>();
  return {.mean = rows,
          .m2 = rows + plan.channels,
          .images = rows + 2 * plan.channels,
          .group_floats = 2 * plan.channels + 1,
          .pixels = static_cast<float>(plan.image_pixels),
          .weight = args.weight.template data<float>(),
          .bias = args.bias.template data<float>(),
          .eps = args.params.eps};
}

// Indices of a channel's constants: those of y = (x - mean) * scale + bias, then those of the
// backward pass.
enum Constant : int { kMean, kScale, kBias, kAffine, kMeanG = kAffine, kSlope, kBackward };

template <int kArrays>
__device__ __forceinline__ void set_affine(const Normalization& norm,
                                           const Normalization::Channel& of,
                                           int channel,
                                           float (&constants)[kArrays]) {
  constants[kMean] = of.mean;
  constants[kScale] = norm.weight[channel] * norm.invstd(of);
  constants[kBias] = norm.bias[channel];
}

// Updates the running statistics of a channel: running = (1 - momentum) * running + momentum *
// batch.
struct Running {
  float momentum = 0;
  float* mean = nullptr;  // null: running statistics are not updated
  float* var = nullptr;

  __device__ void update(int channel, float batch_mean, float m2, float count) const {
    const float keep = 1.0F - momentum;
    const float variance = m2 / (count - 1.0F);
    mean[channel] = keep * mean[channel] + momentum * batch_mean;
    var[channel] = count >= 2 ? keep * var[channel] + momentum * variance : NAN;
  }
};

// Used in both passes, so that the backward pass finds the same bits, and with them the
// activation's gate.
__device__ __forceinline__ float affine(float centered, float scale, float bias) {
  return centered * scale + bias;
}

// A gate of NaN lets the value through.
__device__ __forceinline__ float gated(float gate, float value) {
  return gate <= 0 ? 0.0F : value;
}

__device__ __forceinline__ GeluFactor<float> gelu_of(float y) {
  return gelu_factor<GeluForm::kErf, float, uint32_t>(y);
}

}  // namespace
}  // namespace lockstep::kernels::cuda
