#include "kernels/norm/batch_norm_cpu.h"

#include "core/tree.h"
#include "kernels/norm/batch_norm.h"

namespace lockstep::kernels::LS_CPU {
namespace {

// The mean of a few pixels, at different positions in different images. Exact for a constant
// channel.
template <class T>
void sample_mean(const T* in, int64_t pixels, int64_t channels, float* mean) {
  constexpr int64_t kSamples = 16;
  std::fill_n(mean, channels, 0.0F);
  for (int64_t i = 0; i < kSamples; ++i) {
    const int64_t at = (kSamples * i + (5 * i + 8) % kSamples) * pixels / (kSamples * kSamples);
    const T* pixel = in + at * channels;
    for (int64_t c = 0; c < channels; ++c) {
      mean[c] += (static_cast<float>(pixel[c]) - static_cast<float>(in[c])) * (1.0F / kSamples);
    }
  }
  for (int64_t c = 0; c < channels; ++c) mean[c] += static_cast<float>(in[c]);
}

// Sums of x - shift and of its square.
template <class T>
void sum_deviations(const Lanes& lanes, const T* in, int64_t pixels, float* shift, LaneSums& sums) {
  lanes.spread(shift);
  sum_lanes(
      lanes,
      pixels,
      sums,
      NoOutput{},
      [=](int64_t first) {
        return [shift_tile = Tile::load(shift + first)] [[gnu::always_inline]] (
                   Tile & sum, Tile & squares, const Tile& x) {
          const Tile deviation = x - shift_tile;
          sum = sum + deviation;
          squares = squares + deviation * deviation;
        };
      },
      in);
}

// M2 = sum (x - shift)^2 - (sum (x - shift))^2 / count loses no digits if the shift is within a few
// deviations of the mean, which is nearly always so; otherwise there is a second pass. In memory
// `mean` is followed by M2.
template <class T>
void shard_stats(
    const Lanes& lanes, const T* in, int64_t pixels, float* shift, LaneSums sums, float* mean) {
  float* m2 = mean + lanes.channels;
  const auto count = static_cast<float>(pixels);
  const auto finish = [&] {
    bool precise = true;
    for (int64_t c = 0; c < lanes.channels; ++c) {
      const float offset = sums.total[0][c] / count;
      const float lost = sums.total[0][c] * offset;
      mean[c] = shift[c] + offset;
      m2[c] = sums.total[1][c] - lost;
      precise &= !(lost > 16 * m2[c]);
    }
    return precise;
  };
  sample_mean(in, pixels, lanes.channels, shift);
  sum_deviations(lanes, in, pixels, shift, sums);
  if (finish()) return;
  std::copy_n(mean, lanes.channels, shift);
  sum_deviations(lanes, in, pixels, shift, sums);
  finish();
}

// Chan's formula: `into` becomes the statistics of both.
void merge(float* into, const float* from, int64_t channels, float pixels) {
  const float into_images = into[2 * channels];
  const float from_images = from[2 * channels];
  if (from_images == 0) return;
  if (into_images == 0) {
    std::copy_n(from, 2 * channels + 1, into);
    return;
  }
  const float images = into_images + from_images;
  const float share = from_images / images;
  const float weight = into_images * share * pixels;
  for (int64_t c = 0; c < channels; ++c) {
    const float delta = from[c] - into[c];
    into[c] += delta * share;
    into[channels + c] = into[channels + c] + from[channels + c] + delta * delta * weight;
  }
  into[2 * channels] = images;
}

// `residual`: one pointer or none.
template <Activation kActivation, class T, class... Residual>
void normalize(const Lanes& lanes,
               const AffineLanes& affine,
               int64_t pixels,
               T* out,
               const T* in,
               const Residual*... residual) {
  map_lanes(
      lanes,
      pixels,
      out,
      [=](int64_t first) {
        return [tile = AffineTile(affine, first)] [[gnu::always_inline]] (const Tile& x,
                                                                          const auto&... shortcut) {
          return activated<kActivation>((tile.normalized(x - tile.mean) + ... + shortcut));
        };
      },
      in,
      residual...);
}

// Used by forward and inference. affine_of(group row) gives the constants of a piece's group.
template <class Args, class AffineOf>
void normalize_all(Stream& stream,
                   const Shards& shards,
                   const Args& args,
                   const Lanes& lanes,
                   AffineOf&& affine_of) {
  const int64_t pixels = pixels_per_image(args.in);
  dispatch_float(args.in.dtype(), [&]<class T>() {
    T* to = args.out.template data<T>();
    with_activation(args.params.activation, [&]<Activation kActivation>() {
      const auto run = [&](const auto*... from) {
        const auto piece = [&](int64_t group, int64_t begin, int64_t end) {
          const int64_t start = begin * pixels * lanes.channels;
          normalize<kActivation>(
              lanes, affine_of(group), (end - begin) * pixels, to + start, (from + start)...);
        };
        for_shard_pieces(stream, shards, args.in.numel(), piece);
      };
      const T* in = args.in.template data<T>();
      if constexpr (kActivation != Activation::kGelu) {
        if (args.residual.defined()) return run(in, args.residual.template data<T>());
      }
      run(in);
    });
  });
}

}  // namespace

void batch_norm_shard_stats(Stream& stream, const Shards& shards, const Tensor& in, Tensor& stats) {
  const Lanes lanes(in.shape()[1]);
  const int64_t pixels = pixels_per_image(in);
  float* to = stats.data<float>();
  const Scratch scratch(stream, 0, lanes.width + LaneSums::scratch(lanes));
  for_shards(stream, shards, in.numel(), [&](int64_t k, int worker) {
    const int64_t channels = lanes.channels;
    float* leaf = to + k * (2 * channels + 1);
    leaf[2 * channels] = static_cast<float>(shards.count(k));
    if (shards.count(k) == 0) {
      std::fill_n(leaf, 2 * channels, 0.0F);
      return;
    }
    dispatch_float(in.dtype(), [&]<class T>() {
      shard_stats(lanes,
                  in.data<T>() + shards.begin(k) * pixels * channels,
                  shards.count(k) * pixels,
                  scratch.of(worker),
                  LaneSums(lanes, scratch.of(worker) + lanes.width),
                  leaf);
    });
  });
}

void batch_norm_merge_stats(Stream& stream, const Tensor& leaves, int64_t pixels, Tensor& merged) {
  const int64_t width = merged.numel();
  float* nodes = Scratch(stream, leaves.numel(), 0).shared();
  std::copy_n(leaves.data<float>(), leaves.numel(), nodes);
  for_each_tree_merge(leaves.shape()[0], [&](int64_t into, int64_t from) {
    merge(nodes + into * width, nodes + from * width, width / 2, static_cast<float>(pixels));
  });
  std::copy_n(nodes, width, merged.data<float>());
}

void batch_norm_forward(Stream& stream, const Shards& shards, const BatchNormForwardArgs& args) {
  const Lanes lanes(args.in.shape()[1]);
  const int64_t group_floats = AffineLanes::kArrays * lanes.width;
  const Scratch scratch(stream, shards.local_groups() * group_floats, 0);
  const auto affine_of = [&](int64_t group) {
    return AffineLanes(scratch.shared() + group * group_floats, lanes.width);
  };
  for (int64_t group = 0; group < shards.local_groups(); ++group) {
    const auto stats = ChannelStats::of_group(args.group_stats, group, pixels_per_image(args.in));
    affine_of(group).fill(lanes, stats, args.weight, args.bias, args.params.eps);
  }
  normalize_all(stream, shards, args, lanes, affine_of);
}

void batch_norm_update_running(Stream&,
                               const Tensor& stats,
                               int64_t pixels,
                               float momentum,
                               Tensor& running_mean,
                               Tensor& running_var) {
  const int64_t channels = running_mean.numel();
  const ChannelStats batch(stats.data<float>(), channels, pixels);
  float* mean = running_mean.data<float>();
  float* var = running_var.data<float>();
  const float keep = 1.0F - momentum;
  for (int64_t c = 0; c < channels; ++c) {
    mean[c] = keep * mean[c] + momentum * batch.mean[c];
    var[c] = keep * var[c] + momentum * (batch.m2[c] / (batch.count - 1.0F));
  }
}

void batch_norm_inference(Stream& stream,
                          const Shards& shards,
                          const BatchNormInferenceArgs& args) {
  const Lanes lanes(args.in.shape()[1]);
  const Scratch scratch(stream, AffineLanes::kArrays * lanes.width, 0);
  const AffineLanes affine(scratch.shared(), lanes.width);
  const ChannelStats stats(args.running_mean, args.running_var);
  affine.fill(lanes, stats, args.weight, args.bias, args.params.eps);
  normalize_all(stream, shards, args, lanes, [&](int64_t) { return affine; });
}

}  // namespace lockstep::kernels::LS_CPU
