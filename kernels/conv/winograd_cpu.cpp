#include "kernels/conv/winograd.h"

#if LS_ISA == 4
#include <algorithm>

#include "kernels/conv/winograd_product.h"
#include "kernels/conv/winograd_tiles.h"
#include "kernels/linear/add_bias.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/shard_plans.h"

namespace lockstep::kernels::cpu_v4 {
namespace {

constexpr int64_t kTaps = kFilterEdge * kFilterEdge;
constexpr int64_t kTilesAtOnce = 48;   // forward: their points stay in the second cache
constexpr int64_t kPairsAtOnce = 128;  // backward: as many pairs of a panel stay in the first one
constexpr int64_t kApart = 32;  // a cache line, so that 16 points do not meet in one set of it

int64_t panels_of(int64_t channels) {
  return (channels + kPanel - 1) / kPanel;
}
int64_t panel_width(int64_t channels, int64_t panel) {
  return std::min(kPanel, channels - panel * kPanel);
}

TiledImages tiled(const Tensor& batch, int64_t first, int64_t count) {
  const Shape& shape = batch.shape();
  return {batch.data<BFloat16>() + first * shape.stride0(), count, shape[2], shape[3], shape[1]};
}

// Parts of a workspace, one behind the other, each at a cache line.
class Parts {
 public:
  explicit Parts(std::byte* at) : at_(at) {}

  template <class T>
  T* next(int64_t count) {
    std::byte* const part = at_;
    at_ += bytes_of<T>(count);
    return reinterpret_cast<T*>(part);
  }
  template <class T>
  static size_t bytes_of(int64_t count) {
    return (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
  }

 private:
  std::byte* at_;
};

// Filters (K,C,3,3) as the right sides of products, [panel of outputs][point][pair of
// inputs][output]. Forward, inputs are C and outputs K. For backward data they are turned around:
// inputs are K.
struct Filters {
  const BFloat16* from;
  int64_t outputs, inputs;
  bool turned = false;
  const float* bias = nullptr;  // of the outputs; may be null
  BFloat16* packed = nullptr;

  BFloat16* panel(int64_t index) const { return packed + index * kPanel * kPoints * inputs; }
  int64_t values() const { return outputs * kPoints * inputs; }
};

// A pair's inputs lie side by side in memory.
LS_BF16_CODE void pack_panel(const Filters& filters, int64_t panel) {
  const int64_t width = panel_width(filters.outputs, panel);
  const int64_t inputs = filters.inputs;
  for (int64_t n = 0; n < width; ++n) {
    const BFloat16* from = filters.from + (panel * kPanel + n) * kTaps * inputs;
    for (int64_t d = 0; d < inputs; d += kLineLanes, from += kLineLanes) {
      const Points p = transformed_filters(
          [=] [[gnu::always_inline]] (int tap) { return load_vector(from + tap * inputs); });
      BFloat16* const to = filters.panel(panel) + d * width + 2 * n;
      for (int64_t i = 0; i < kPoints; ++i) {
        BFloat16 rounded[kLineLanes];
        store_rounded(p.at[i], rounded);
        for (int64_t pair = 0; pair < kLineLanes / 2; ++pair) {
          std::copy_n(rounded + 2 * pair, 2, to + i * inputs * width + 2 * pair * width);
        }
      }
    }
  }
}

// A pair's outputs lie side by side in memory.
LS_BF16_CODE void pack_turned_panel(const Filters& filters, int64_t panel) {
  const int64_t width = panel_width(filters.outputs, panel);
  const int64_t filter = kTaps * filters.outputs;
  for (int64_t d = 0; d < filters.inputs; d += 2) {
    for (int64_t n = 0; n < width; n += kLineLanes) {
      const BFloat16* const from = filters.from + d * filter + panel * kPanel + n;
      const auto filter_at = [&] [[gnu::always_inline]] (const BFloat16* at) {
        return transformed_filters([&] [[gnu::always_inline]] (int tap) {
          return load_vector(at + (kTaps - 1 - tap) * filters.outputs);
        });
      };
      const Points first = filter_at(from), second = filter_at(from + filter);
      BFloat16* const to = filters.panel(panel) + d * width + 2 * n;
      for (int64_t i = 0; i < kPoints; ++i) {
        store_pairs(first.at[i], second.at[i], to + i * filters.inputs * width);
      }
    }
  }
}

// Values from a point of kTilesAtOnce tiles to the next.
int64_t point_stride(int64_t channels) {
  return kTilesAtOnce * channels + kApart;
}

// Inputs' points, [point][tile][channel].
LS_BF16_CODE void transform_windows(
    const TiledImages& in, int64_t first, int64_t tiles, const BFloat16* zeros, BFloat16* points) {
  const int64_t point = point_stride(in.channels);
  for (int64_t t = 0; t < tiles; ++t, points += in.channels) {
    const TileWindow window(in, first + t, 1, zeros);
    for (int64_t c = 0; c < in.channels; c += kLineLanes) {
      const Points p = transformed_window(window, c);
#pragma GCC unroll 16
      for (int i = 0; i < kPoints; ++i) store_rounded(p.at[i], points + i * point + c);
    }
  }
}

// Outputs of a panel of channels, of tiles from `first` on. sums is [point][tile][kPanel].
struct OutputPanel {
  const float* sums;
  const float* bias;  // of the panel; may be null
  int64_t first_tile, tiles, first_channel, width;
};

LS_BF16_CODE void write_outputs(const OutputPanel& panel, const TiledImages& shape, BFloat16* out) {
  for (int64_t t = 0; t < panel.tiles; ++t) {
    const TilePlace place(shape, panel.first_tile + t);
    const int64_t columns = std::min<int64_t>(kOutEdge, shape.width - place.x);
    const int64_t rows = std::min<int64_t>(kOutEdge, shape.height - place.y);
    BFloat16* const to = out + shape.place(place.image, place.y, place.x) + panel.first_channel;
    for (int64_t v = 0; v < panel.width; v += kLineLanes) {
      const float* const sums = panel.sums + t * kPanel + v;
      Vector outputs[kOutEdge * kOutEdge];
      outputs_of([=] [[gnu::always_inline]] (
                     int point) { return load_vector(sums + point * kTilesAtOnce * kPanel); },
                 outputs);
      const Vector bias = panel.bias == nullptr ? Vector{} : load_vector(panel.bias + v);
      for (int64_t y = 0; y < rows; ++y) {
        for (int64_t x = 0; x < columns; ++x) {
          store_rounded(outputs[y * kOutEdge + x] + bias,
                        to + (y * shape.width + x) * shape.channels + v);
        }
      }
    }
  }
}

// Convolves images on one thread. out is like `in` but for its channels.
void convolve(const TiledImages& in, const Filters& filters, Parts scratch, BFloat16* out) {
  TiledImages out_shape = in;
  out_shape.channels = filters.outputs;
  auto* const zeros = scratch.next<BFloat16>(in.channels);
  auto* const points = scratch.next<BFloat16>(kPoints * point_stride(in.channels));
  auto* const sums = scratch.next<float>(kPoints * kTilesAtOnce * kPanel);
  std::fill_n(zeros, in.channels, BFloat16{});
  for (int64_t first = 0; first < in.tiles(); first += kTilesAtOnce) {
    const int64_t tiles = std::min(kTilesAtOnce, in.tiles() - first);
    transform_windows(in, first, tiles, zeros, points);
    for (int64_t panel = 0; panel < panels_of(filters.outputs); ++panel) {
      const int64_t width = panel_width(filters.outputs, panel);
      for (int64_t i = 0; i < kPoints; ++i) {
        multiply<false>(tiles,
                        {points + i * point_stride(in.channels), in.channels, 2},
                        {filters.panel(panel) + i * in.channels * width, width},
                        in.channels / 2,
                        sums + i * kTilesAtOnce * kPanel);
      }
      write_outputs({.sums = sums,
                     .bias = filters.bias == nullptr ? nullptr : filters.bias + panel * kPanel,
                     .first_tile = first,
                     .tiles = tiles,
                     .first_channel = panel * kPanel,
                     .width = width},
                    out_shape,
                    out);
    }
  }
}

size_t convolve_bytes(int64_t channels) {
  return Parts::bytes_of<BFloat16>(channels) +
         Parts::bytes_of<BFloat16>(kPoints * point_stride(channels)) +
         Parts::bytes_of<float>(kPoints * kTilesAtOnce * kPanel);
}

void convolve_batch(
    Stream& stream, const Shards& shards, const Tensor& in, Filters filters, Tensor& out) {
  const Workspace workspace =
      stream.workspace(Parts::bytes_of<BFloat16>(filters.values()), convolve_bytes(filters.inputs));
  filters.packed = Parts(workspace.shared).next<BFloat16>(filters.values());
  stream.fork(panels_of(filters.outputs), [&](int64_t panel, int) {
    (filters.turned ? pack_turned_panel : pack_panel)(filters, panel);
  });
  BFloat16* const to = out.data<BFloat16>();
  for_images(stream, shards, [&](int64_t begin, int64_t end, int worker) {
    convolve(tiled(in, begin, end - begin),
             filters,
             Parts(workspace.of(worker)),
             to + begin * out.shape().stride0());
  });
}

// Points of pairs of tiles, [panel of channels][point][pair][channel].
struct PairedPoints {
  BFloat16* at;
  int64_t channels;

  static int64_t stride(int64_t width) { return 2 * kPairsAtOnce * width + kApart; }
  static int64_t values(int64_t channels) { return panels_of(channels) * kPoints * stride(kPanel); }
  BFloat16* point(int64_t panel, int64_t i) const {
    return at + panel * kPoints * stride(kPanel) + i * stride(panel_width(channels, panel));
  }
};

LS_BF16_CODE [[gnu::always_inline]] inline void store_point_pairs(
    const Points& first, const Points& second, PairedPoints to, int64_t pair, int64_t channel) {
  const int64_t panel = channel / kPanel;
  const int64_t width = panel_width(to.channels, panel);
  BFloat16* const at = to.point(panel, 0) + 2 * (pair * width + channel % kPanel);
#pragma GCC unroll 16
  for (int64_t i = 0; i < kPoints; ++i) {
    store_pairs(first.at[i], second.at[i], at + i * PairedPoints::stride(width));
  }
}

// Pairs of tiles from `first` on; the last one's second may be none, which counts as zeros.
struct TilePairs {
  int64_t first, tiles;

  int64_t pairs() const { return (tiles + 1) / 2; }
  template <int kCount>
  Pixels<kCount> pixels(const TiledImages& batch,
                        int64_t tile,
                        int64_t before,
                        const BFloat16* zeros) const {
    if (tile >= tiles) return Pixels<kCount>::all(zeros);
    return Pixels<kCount>(batch, first + tile, before, zeros);
  }
};

LS_BF16_CODE void transform_pairs_of_windows(const TiledImages& in,
                                             TilePairs tiles,
                                             const BFloat16* zeros,
                                             PairedPoints points) {
  for (int64_t pair = 0; pair < tiles.pairs(); ++pair) {
    const TileWindow first = tiles.pixels<kEdge>(in, 2 * pair, 1, zeros);
    const TileWindow second = tiles.pixels<kEdge>(in, 2 * pair + 1, 1, zeros);
    for (int64_t c = 0; c < in.channels; c += kLineLanes) {
      store_point_pairs(
          transformed_window(first, c), transformed_window(second, c), points, pair, c);
    }
  }
}

LS_BF16_CODE void transform_pairs_of_gradients(const TiledImages& grad_out,
                                               TilePairs tiles,
                                               const BFloat16* zeros,
                                               PairedPoints points) {
  for (int64_t pair = 0; pair < tiles.pairs(); ++pair) {
    const GradientTile first = tiles.pixels<kOutEdge>(grad_out, 2 * pair, 0, zeros);
    const GradientTile second = tiles.pixels<kOutEdge>(grad_out, 2 * pair + 1, 0, zeros);
    for (int64_t k = 0; k < grad_out.channels; k += kLineLanes) {
      store_point_pairs(
          transformed_gradients(first, k), transformed_gradients(second, k), points, pair, k);
    }
  }
}

// Sums of a panel of K times a panel of C, [point][K][C].
constexpr int64_t kBlock = kPoints * kPanel * kPanel;

void write_gradients(
    const float* block, int64_t rows, int64_t columns, int64_t channels, float* grad_weight) {
  for (int64_t k = 0; k < rows; ++k, grad_weight += kTaps * channels) {
    for (int64_t c = 0; c < columns; c += kLineLanes) {
      const float* const sums = block + k * kPanel + c;
      Vector taps[kTaps];
      filter_gradients([=] [[gnu::always_inline]] (
                           int point) { return load_vector(sums + point * kPanel * kPanel); },
                       taps);
#pragma GCC unroll 9
      for (int64_t tap = 0; tap < kTaps; ++tap) {
        store_vector(taps[tap], grad_weight + tap * channels + c);
      }
    }
  }
}

int64_t blocks_of(const TiledImages& in, const TiledImages& grad_out) {
  return in.tiles() <= 2 * kPairsAtOnce ? 1 : panels_of(in.channels) * panels_of(grad_out.channels);
}

// The gradient of a shard's weights, (K,3,3,C), on one thread.
void differentiate(const TiledImages& in,
                   const TiledImages& grad_out,
                   Parts scratch,
                   float* grad_weight) {
  const int64_t most = std::max(in.channels, grad_out.channels);
  auto* const zeros = scratch.next<BFloat16>(most);
  std::fill_n(zeros, most, BFloat16{});
  const PairedPoints inputs{scratch.next<BFloat16>(PairedPoints::values(in.channels)), in.channels};
  const PairedPoints gradients{scratch.next<BFloat16>(PairedPoints::values(grad_out.channels)),
                               grad_out.channels};
  const int64_t blocks = blocks_of(in, grad_out);
  auto* const sums = scratch.next<float>(blocks * kBlock);
  for (int64_t first = 0; first < in.tiles(); first += 2 * kPairsAtOnce) {
    const TilePairs tiles{first, std::min(2 * kPairsAtOnce, in.tiles() - first)};
    transform_pairs_of_windows(in, tiles, zeros, inputs);
    transform_pairs_of_gradients(grad_out, tiles, zeros, gradients);
    const bool is_last = first + tiles.tiles == in.tiles();
    int64_t block = 0;
    for (int64_t k = 0; k < panels_of(grad_out.channels); ++k) {
      const int64_t rows = panel_width(grad_out.channels, k);
      for (int64_t c = 0; c < panels_of(in.channels); ++c, ++block) {
        const int64_t columns = panel_width(in.channels, c);
        float* const to = sums + block % blocks * kBlock;
        for (int64_t i = 0; i < kPoints; ++i) {
          const PairedRows left{gradients.point(k, i), 2, 2 * rows};
          const PairedPanel right{inputs.point(c, i), columns};
          float* const at = to + i * kPanel * kPanel;
          if (first == 0) {
            multiply<false>(rows, left, right, tiles.pairs(), at);
          } else {
            multiply<true>(rows, left, right, tiles.pairs(), at);
          }
        }
        if (is_last) {
          write_gradients(
              to, rows, columns, in.channels, grad_weight + (k * kTaps * in.channels + c) * kPanel);
        }
      }
    }
  }
}

size_t differentiate_bytes(const TiledImages& in, const TiledImages& grad_out) {
  return Parts::bytes_of<BFloat16>(std::max(in.channels, grad_out.channels)) +
         Parts::bytes_of<BFloat16>(PairedPoints::values(in.channels)) +
         Parts::bytes_of<BFloat16>(PairedPoints::values(grad_out.channels)) +
         Parts::bytes_of<float>(blocks_of(in, grad_out) * kBlock);
}

}  // namespace

void winograd_forward(Stream& stream, const Shards& shards, const Conv2dForwardArgs& args) {
  const Shape& weight = args.weight.shape();
  const Filters filters{.from = args.weight.data<BFloat16>(),
                        .outputs = weight[0],
                        .inputs = weight[1],
                        .bias = args.bias.defined() ? args.bias.data<float>() : nullptr};
  convolve_batch(stream, shards, args.in, filters, args.out);
}

void winograd_backward_data(Stream& stream,
                            const Shards& shards,
                            const Tensor& grad_out,
                            const Tensor& weight,
                            const Conv2dParams&,
                            Tensor& grad_in) {
  const Filters filters{.from = weight.data<BFloat16>(),
                        .outputs = weight.shape()[1],
                        .inputs = weight.shape()[0],
                        .turned = true};
  convolve_batch(stream, shards, grad_out, filters, grad_in);
}

void winograd_backward_weight(Stream& stream,
                              const Shards& shards,
                              const Conv2dBackwardWeightArgs& args) {
  const auto batch = [&](const Tensor& of, int64_t k) {
    return tiled(of, shards.begin(k), shards.count(k));
  };
  size_t most = 0;
  for (int64_t k = 0; k < shards.local(); ++k) {
    most = std::max(most, differentiate_bytes(batch(args.in, k), batch(args.grad_out, k)));
  }
  const Workspace workspace = stream.workspace(0, most);
  stream.fork(shards.local(), [&](int64_t k, int worker) {
    if (shards.count(k) == 0) return zero_leaf(args.grad_weight, k);
    differentiate(batch(args.in, k),
                  batch(args.grad_out, k),
                  Parts(workspace.of(worker)),
                  shard_leaf(args.grad_weight, k));
  });
  Tensor grad_bias = args.bias_gradient();
  if (grad_bias.defined()) add_bias_backward(stream, shards, args.grad_out, grad_bias);
}

}  // namespace lockstep::kernels::cpu_v4
#endif
