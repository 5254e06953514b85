#include "kernels/conv/winograd.h"

#if LS_ISA == 4
#include <algorithm>

#include "kernels/conv/winograd_bf16_product.h"
#include "kernels/conv/winograd_bf16_tiles.h"
#include "kernels/linear/add_bias.h"
#include "kernels/support/shard_plans.h"

namespace lockstep::kernels::cpu_v4 {
namespace {

constexpr int64_t kPairsAtOnce = 128;  // as many pairs of a panel stay in the L1 cache

// The points of pairs of tiles: [panel of channels][point][pair][channel].
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

// Pairs of tiles, starting with tile `first`. If the number of tiles is odd, the last pair is
// completed by zeros.
struct TilePairs {
  int64_t first, tiles;

  int64_t pairs() const { return (tiles + 1) / 2; }
  template <int kCount>
  Pixels<kCount> pixels(const TiledImages& batch, int64_t tile, const BFloat16* zeros) const {
    if (tile >= tiles) return Pixels<kCount>::all(zeros);
    return Pixels<kCount>(batch, first + tile, zeros);
  }
};

// Transforms kCount x kCount pixels around each tile: windows of inputs, or tiles of gradients.
template <int kCount>
LS_BF16_CODE void transform_pairs(const TiledImages& batch,
                                  TilePairs tiles,
                                  const BFloat16* zeros,
                                  PairedPoints points) {
  for (int64_t pair = 0; pair < tiles.pairs(); ++pair) {
    const Pixels<kCount> first = tiles.pixels<kCount>(batch, 2 * pair, zeros);
    const Pixels<kCount> second = tiles.pixels<kCount>(batch, 2 * pair + 1, zeros);
    for (int64_t c = 0; c < batch.channels; c += kLineLanes) {
      store_point_pairs(transformed(first, c), transformed(second, c), points, pair, c);
    }
  }
}

// Size of the sums of a panel of K times a panel of C: [point][K][C].
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
                   WorkspaceParts scratch,
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
    transform_pairs<kEdge>(in, tiles, zeros, inputs);
    transform_pairs<kOutEdge>(grad_out, tiles, zeros, gradients);
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
  return WorkspaceParts::bytes_of<BFloat16>(std::max(in.channels, grad_out.channels)) +
         WorkspaceParts::bytes_of<BFloat16>(PairedPoints::values(in.channels)) +
         WorkspaceParts::bytes_of<BFloat16>(PairedPoints::values(grad_out.channels)) +
         WorkspaceParts::bytes_of<float>(blocks_of(in, grad_out) * kBlock);
}

}  // namespace

void winograd_backward_weight(Stream& stream,
                              const Shards& shards,
                              const Conv2dBackwardWeightArgs& args) {
  const auto batch = [&](const Tensor& of, int64_t k) {
    return cut_into_tiles<BFloat16, kOutEdge>(of, shards.begin(k), shards.count(k));
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
                  WorkspaceParts(workspace.of(worker)),
                  shard_leaf(args.grad_weight, k));
  });
  if (args.grad_bias != nullptr && args.grad_bias->defined()) {
    add_bias_backward(stream, shards, args.grad_out, *args.grad_bias);
  }
}

}  // namespace lockstep::kernels::cpu_v4
#endif
