// Code that the forward and backward bodies of batch_norm share. Included by *_cpu.cpp files alone:
// see cpu_loops.h.
#pragma once

#include <cmath>

#include "kernels/elementwise/gelu_rule.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/norm/channel_lanes.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {

inline int64_t pixels_per_image(const Tensor& in) {
  return in.shape().rank() == 4 ? in.shape()[2] * in.shape()[3] : 1;
}

// The stream's workspace as floats.
class Scratch {
 public:
  Scratch(Stream& stream, int64_t shared_floats, int64_t worker_floats)
      : workspace_(stream.workspace(static_cast<size_t>(shared_floats) * sizeof(float),
                                    static_cast<size_t>(worker_floats) * sizeof(float))) {}

  float* shared() const { return reinterpret_cast<float*>(workspace_.shared); }
  float* of(int worker) const { return reinterpret_cast<float*>(workspace_.of(worker)); }

 private:
  Workspace workspace_;
};

// Calls body(shard, worker) for each local shard. Each shard is a task, unless the tensor is small.
template <class Body>
[[gnu::always_inline]] inline void for_shards(Stream& stream,
                                              const Shards& shards,
                                              int64_t elements,
                                              Body&& body) {
  if (elements < kElementsPerFork) {
    for (int64_t k = 0; k < shards.local(); ++k) body(k, 0);
    return;
  }
  stream.fork(shards.local(), body);
}

// Calls body(group row, first image, end image) for ranges of images that together cover the batch:
// whole shards, or pieces of shards if there are fewer shards than workers.
template <class Body>
[[gnu::always_inline]] inline void for_shard_pieces(Stream& stream,
                                                    const Shards& shards,
                                                    int64_t elements,
                                                    Body&& body) {
  const bool whole = elements < kElementsPerFork || shards.local() >= stream.threads();
  const int64_t pieces = whole ? 1 : stream.threads();
  const auto run_piece = [&](int64_t task, int) {
    const int64_t k = task / pieces;
    const int64_t piece = task % pieces;
    const auto edge = [&](int64_t i) { return shards.begin(k) + shards.count(k) * i / pieces; };
    body(shards.group(k) - shards.first_group(), edge(piece), edge(piece + 1));
  };
  if (elements < kElementsPerFork) {
    for (int64_t task = 0; task < shards.local(); ++task) run_piece(task, 0);
    return;
  }
  stream.fork(shards.local() * pieces, run_piece);
}

// Calls body.operator()<activation>().
template <class Body>
[[gnu::always_inline]] inline void with_relu_or_none(Activation activation, Body&& body) {
  if (activation == Activation::kRelu) return body.template operator()<Activation::kRelu>();
  body.template operator()<Activation::kNone>();
}
template <class Body>
[[gnu::always_inline]] inline void with_activation(Activation activation, Body&& body) {
  if (activation == Activation::kGelu) return body.template operator()<Activation::kGelu>();
  with_relu_or_none(activation, body);
}

[[gnu::always_inline]] inline GeluFactor<Tile::Vector> gelu_of(Tile::Vector x) {
  return gelu_factor<GeluForm::kErf, Tile::Vector, LineWords>(x);
}
template <Activation kActivation>
[[gnu::always_inline]] inline Tile activated(const Tile& y) {
  if constexpr (kActivation == Activation::kRelu) return gated(y, y);
  if constexpr (kActivation == Activation::kGelu) {
    return Tile::make(
        [&] [[gnu::always_inline]] (int64_t i) { return y.parts[i] * gelu_of(y.parts[i]).value; });
  }
  return y;
}
// Computes the gradient of y from that of activated(y).
template <Activation kActivation>
[[gnu::always_inline]] inline Tile through_activation(const Tile& y, const Tile& grad) {
  if constexpr (kActivation == Activation::kRelu) return gated(y, grad);
  if constexpr (kActivation == Activation::kGelu) {
    return Tile::make([&] [[gnu::always_inline]] (int64_t i) {
      return grad.parts[i] * gelu_of(y.parts[i]).slope;
    });
  }
  return grad;
}

// The mean and the sum of squared deviations of each channel.
struct ChannelStats {
  const float* mean;
  const float* m2;
  float count;

  ChannelStats(const Tensor& means, const Tensor& variances)
      : mean(means.data<float>()), m2(variances.data<float>()), count(1) {}
  // From a row (mean[C], M2[C], images).
  ChannelStats(const float* row, int64_t channels, int64_t pixels)
      : mean(row), m2(row + channels), count(row[2 * channels] * static_cast<float>(pixels)) {}
  static ChannelStats of_group(const Tensor& group_stats, int64_t group, int64_t pixels) {
    const int64_t columns = group_stats.shape()[1];
    return {group_stats.data<float>() + group * columns, columns / 2, pixels};
  }

  [[gnu::always_inline]] float invstd(int64_t c, float eps) const {
    return 1.0F / std::sqrt(m2[c] / count + eps);
  }
};

// Constants of y = (x - mean) * scale + bias, scale = weight * invstd, for all lanes.
struct AffineLanes {
  static constexpr int64_t kArrays = 3;

  AffineLanes(float* memory, int64_t width)
      : mean(memory), scale(memory + width), bias(memory + 2 * width) {}

  void fill(const Lanes& lanes,
            const ChannelStats& stats,
            const Tensor& weights,
            const Tensor& biases,
            float eps) const {
    const float* weight = weights.data<float>();
    std::copy_n(stats.mean, lanes.channels, mean);
    std::copy_n(biases.data<float>(), lanes.channels, bias);
    for (int64_t c = 0; c < lanes.channels; ++c) scale[c] = weight[c] * stats.invstd(c, eps);
    for (float* values : {mean, scale, bias}) lanes.spread(values);
  }

  float* mean;
  float* scale;
  float* bias;
};

// One tile of AffineLanes, in registers.
struct AffineTile {
  [[gnu::always_inline]] AffineTile(const AffineLanes& lanes, int64_t first)
      : mean(Tile::load(lanes.mean + first)),
        scale(Tile::load(lanes.scale + first)),
        bias(Tile::load(lanes.bias + first)) {}

  // Used in both passes, so that the backward pass finds the same bits, and with them the
  // activation's gate.
  [[gnu::always_inline]] Tile normalized(const Tile& centered) const {
    return centered * scale + bias;
  }

  Tile mean;
  Tile scale;
  Tile bias;
};

}  // namespace lockstep::kernels::LS_CPU
