#include "kernels/norm/batch_norm.h"
#include "kernels/norm/batch_norm_cpu.h"

namespace lockstep::kernels::LS_CPU {
namespace {

// Constants of grad_in = scale * (g - mean_g - (x - mean) * slope), and those that g is computed
// with, for all lanes.
struct BackwardLanes {
  static constexpr int64_t kArrays = AffineLanes::kArrays + 2;

  BackwardLanes(float* memory, int64_t width)
      : affine(memory, width), mean_g(memory + 3 * width), slope(memory + 4 * width) {}

  // grad_weight, grad_bias: the group's sums.
  void fill(const Lanes& lanes,
            const ChannelStats& stats,
            const float* grad_weight,
            const float* grad_bias,
            float eps) const {
    for (int64_t c = 0; c < lanes.channels; ++c) {
      mean_g[c] = grad_bias[c] / stats.count;
      slope[c] = stats.invstd(c, eps) * (grad_weight[c] / stats.count);
    }
    for (float* values : {mean_g, slope}) lanes.spread(values);
  }

  AffineLanes affine;
  float* mean_g;
  float* slope;
};

template <class T>
struct NormGradient {
  const T *in, *grad_out;
};

// Sums of g and of g * (x - mean); g goes to `out`, a pointer or NoOutput.
template <Activation kActivation, class T, class Out>
void sum_gradients(const Lanes& lanes,
                   const AffineLanes& affine,
                   int64_t pixels,
                   const NormGradient<T>& from,
                   Out out,
                   LaneSums& sums) {
  sum_lanes(
      lanes,
      pixels,
      sums,
      out,
      [=](int64_t first) {
        return [tile = AffineTile(affine, first)] [[gnu::always_inline]] (
                   Tile & sum_g, Tile & sum_gx, const Tile& x, const Tile& grad) {
          const Tile centered = x - tile.mean;
          const Tile g = through_activation<kActivation>(tile.normalized(centered), grad);
          sum_g = sum_g + g;
          sum_gx = sum_gx + g * centered;
          return g;
        };
      },
      from.in,
      from.grad_out);
}

template <class T>
struct GatedGradient {
  const T *in, *out, *grad_out;
};

// The same if the sign of `out` is the gate; g goes to grad_residual.
template <class T>
void sum_residual_gradients(const Lanes& lanes,
                            const float* means,
                            int64_t pixels,
                            const GatedGradient<T>& from,
                            T* grad_residual,
                            LaneSums& sums) {
  sum_lanes(
      lanes,
      pixels,
      sums,
      grad_residual,
      [=](int64_t first) {
        return [mean = Tile::load(means + first)] [[gnu::always_inline]] (
                   Tile & sum_g, Tile & sum_gx, const Tile& x, const Tile& gate, const Tile& grad) {
          const Tile g = gated(gate, grad);
          sum_g = sum_g + g;
          sum_gx = sum_gx + g * (x - mean);
          return g;
        };
      },
      from.in,
      from.out,
      from.grad_out);
}

template <Activation kActivation, class T>
void input_gradient(const Lanes& lanes,
                    const BackwardLanes& backward,
                    int64_t pixels,
                    const T* in,
                    const T* grad_out,
                    T* grad_in) {
  map_lanes(
      lanes,
      pixels,
      grad_in,
      [=](int64_t first) {
        return [tile = AffineTile(backward.affine, first),
                mean_g = Tile::load(backward.mean_g + first),
                slope = Tile::load(backward.slope + first)] [[gnu::always_inline]] (
                   const Tile& x, const Tile& grad) {
          const Tile centered = x - tile.mean;
          const Tile g = through_activation<kActivation>(tile.normalized(centered), grad);
          return tile.scale * (g - mean_g - centered * slope);
        };
      },
      in,
      grad_out);
}

}  // namespace

void batch_norm_shard_sums(Stream& stream, const Shards& shards, const BatchNormSumsArgs& args) {
  const Lanes lanes(args.in.shape()[1]);
  const int64_t pixels = pixels_per_image(args.in);
  const int64_t group_floats = AffineLanes::kArrays * lanes.width;
  const Scratch scratch(stream, shards.local_groups() * group_floats, LaneSums::scratch(lanes));
  const auto affine_of = [&](int64_t group) {
    return AffineLanes(scratch.shared() + group * group_floats, lanes.width);
  };
  for (int64_t group = 0; group < shards.local_groups(); ++group) {
    const auto stats = ChannelStats::of_group(args.group_stats, group, pixels);
    affine_of(group).fill(lanes, stats, args.weight, args.bias, args.params.eps);
  }
  float* weight_leaves = args.grad_weight.data<float>();
  float* bias_leaves = args.grad_bias.data<float>();
  for_shards(stream, shards, args.in.numel(), [&](int64_t k, int worker) {
    const int64_t channels = lanes.channels;
    const int64_t group = shards.group(k) - shards.first_group();
    const AffineLanes affine = affine_of(group);
    const int64_t count = shards.count(k) * pixels;
    const int64_t at = shards.begin(k) * pixels * channels;
    LaneSums sums(lanes, scratch.of(worker));
    dispatch_float(args.in.dtype(), [&]<class T>() {
      const T* x = args.in.data<T>() + at;
      const T* grad = args.grad_out.data<T>() + at;
      const NormGradient<T> from{x, grad};
      if (args.out.defined()) {
        sum_residual_gradients(lanes,
                               affine.mean,
                               count,
                               GatedGradient<T>{x, args.out.data<T>() + at, grad},
                               args.grad_residual->data<T>() + at,
                               sums);
      } else if (args.params.activation == Activation::kGelu) {
        T* to = args.grad_residual->data<T>() + at;
        sum_gradients<Activation::kGelu>(lanes, affine, count, from, to, sums);
      } else {
        with_relu_or_none(args.params.activation, [&]<Activation kActivation>() {
          sum_gradients<kActivation>(lanes, affine, count, from, NoOutput{}, sums);
        });
      }
    });
    const auto stats = ChannelStats::of_group(args.group_stats, group, pixels);
    for (int64_t c = 0; c < channels; ++c) {
      bias_leaves[k * channels + c] = sums.total[0][c];
      weight_leaves[k * channels + c] =
          count == 0 ? 0.0F : sums.total[1][c] * stats.invstd(c, args.params.eps);  // not 0 * NaN
    }
  });
}

void batch_norm_backward(Stream& stream, const Shards& shards, const BatchNormBackwardArgs& args) {
  const Lanes lanes(args.in.shape()[1]);
  const int64_t pixels = pixels_per_image(args.in);
  const int64_t group_floats = BackwardLanes::kArrays * lanes.width;
  const Scratch scratch(stream, shards.local_groups() * group_floats, 0);
  const auto backward_of = [&](int64_t group) {
    return BackwardLanes(scratch.shared() + group * group_floats, lanes.width);
  };
  for (int64_t group = 0; group < shards.local_groups(); ++group) {
    const auto stats = ChannelStats::of_group(args.group_stats, group, pixels);
    const BackwardLanes backward = backward_of(group);
    backward.affine.fill(lanes, stats, args.weight, args.bias, args.params.eps);
    backward.fill(lanes,
                  stats,
                  args.group_grad_weight.data<float>() + group * lanes.channels,
                  args.group_grad_bias.data<float>() + group * lanes.channels,
                  args.params.eps);
  }
  dispatch_float(args.in.dtype(), [&]<class T>() {
    const T* x = args.in.data<T>();
    const T* grad = args.grad_out.data<T>();
    T* to = args.grad_in.data<T>();
    with_relu_or_none(args.params.activation, [&]<Activation kActivation>() {
      const auto piece = [&](int64_t group, int64_t begin, int64_t end) {
        const int64_t start = begin * pixels * lanes.channels;
        input_gradient<kActivation>(
            lanes, backward_of(group), (end - begin) * pixels, x + start, grad + start, to + start);
      };
      for_shard_pieces(stream, shards, args.in.numel(), piece);
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
