#include "kernels/conv/winograd.h"

#if LS_ISA == 3
#include <algorithm>

#include "kernels/conv/winograd_f32_product.h"
#include "kernels/conv/winograd_images.h"
#include "kernels/linear/add_bias.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/shard_plans.h"

namespace lockstep::kernels::cpu_v3 {
namespace {

constexpr int64_t kTilesPerPass = 64;  // a panel's points of these tiles stay in the L1 cache

// The points of tiles: [panel of channels][point]. For inputs each is a RightPanel whose rows are
// tiles, for gradients [tile][channel].
struct TilePoints {
  float* at;
  int64_t channels;

  static int64_t stride(int64_t width) { return kTilesPerPass * width + kApart; }
  static int64_t values(int64_t channels) { return panels_of(channels) * kPoints * stride(kPanel); }
  float* point(int64_t panel, int64_t i) const {
    return at + panel * kPoints * stride(kPanel) + i * stride(panel_width(channels, panel));
  }
};

// Transforms the pixels around each tile from `first` on: windows of inputs, or tiles of gradients.
template <class Rows, class T, int kEdge>
void transform_tiles(const TiledBatch<T, kEdge>& batch,
                     int64_t first,
                     int64_t tiles,
                     const T* zeros,
                     TilePoints points) {
  for (int64_t t = 0; t < tiles; ++t) {
    const TilePixels<T, kEdge, Rows::kFrom> pixels(batch, first + t, zeros);
    for (int64_t c = 0; c < batch.channels; c += kLanes) {
      const int64_t panel = c / kPanel, column = c % kPanel;
      const int64_t width = panel_width(batch.channels, panel);
      float* const to = points.point(panel, 0) +
                        (Rows::kFrom == kWindow ? RightPanel::place(column, tiles) +
                                                      t * RightPanel::row_stride(column, width)
                                                : t * width + column);
      transform_square<Rows>(
          [&] [[gnu::always_inline]] (int pixel) { return load_vector(pixels.at[pixel] + c); },
          [&] [[gnu::always_inline]] (int64_t point, Vector value) {
            store_vector(value, to + point * TilePoints::stride(width));
          });
    }
  }
}

// Size of the sums of a panel of K times a panel of C: [point][K][C].
constexpr int64_t kBlock = kPoints * kPanel * kPanel;

template <int kFilter>
void write_gradients(
    const float* block, int64_t rows, int64_t columns, int64_t channels, float* grad_weight) {
  for (int64_t k = 0; k < rows; ++k, grad_weight += kTaps<kFilter> * channels) {
    for (int64_t c = 0; c < columns; c += kLanes) {
      const float* const sums = block + k * kPanel + c;
      transform_square<FilterGradientLine<kFilter>>(
          [&] [[gnu::always_inline]] (int point) {
            return load_vector(sums + point * kPanel * kPanel);
          },
          [&] [[gnu::always_inline]] (int64_t tap, Vector value) {
            store_vector(value, grad_weight + tap * channels + c);
          });
    }
  }
}

template <class T, int kEdge>
int64_t blocks_of(const TiledBatch<T, kEdge>& in, const TiledBatch<T, kEdge>& grad_out) {
  return in.tiles() <= kTilesPerPass ? 1 : panels_of(in.channels) * panels_of(grad_out.channels);
}

// The gradient of a shard's weights, (K,3,3,C) or (K,5,5,C), on one thread.
template <int kFilter, class T>
void differentiate(const TiledBatch<T, kTile<kFilter>>& in,
                   const TiledBatch<T, kTile<kFilter>>& grad_out,
                   WorkspaceParts scratch,
                   float* grad_weight) {
  const int64_t most = std::max(in.channels, grad_out.channels);
  T* const zeros = scratch.next<T>(most);
  std::fill_n(zeros, most, T{});
  const TilePoints inputs{scratch.next<float>(TilePoints::values(in.channels)), in.channels};
  const TilePoints gradients{scratch.next<float>(TilePoints::values(grad_out.channels)),
                             grad_out.channels};
  const int64_t blocks = blocks_of(in, grad_out);
  auto* const sums = scratch.next<float>(blocks * kBlock);
  for (int64_t first = 0; first < in.tiles(); first += kTilesPerPass) {
    const int64_t tiles = std::min(kTilesPerPass, in.tiles() - first);
    transform_tiles<WindowLine>(in, first, tiles, zeros, inputs);
    transform_tiles<GradientLine<kFilter>>(grad_out, first, tiles, zeros, gradients);
    const bool is_last = first + tiles == in.tiles();
    int64_t block = 0;
    for (int64_t k = 0; k < panels_of(grad_out.channels); ++k) {
      const int64_t rows = panel_width(grad_out.channels, k);
      for (int64_t c = 0; c < panels_of(in.channels); ++c, ++block) {
        const int64_t columns = panel_width(in.channels, c);
        float* const to = sums + block % blocks * kBlock;
        for (int64_t i = 0; i < kPoints; ++i) {
          const LeftRows left{gradients.point(k, i), 1, rows};
          const RightPanel right{inputs.point(c, i), columns};
          float* const at = to + i * kPanel * kPanel;
          if (first == 0) {
            multiply<false>(rows, left, right, tiles, at);
          } else {
            multiply<true>(rows, left, right, tiles, at);
          }
        }
        if (is_last) {
          float* const of_panel = grad_weight + (k * kTaps<kFilter> * in.channels + c) * kPanel;
          write_gradients<kFilter>(to, rows, columns, in.channels, of_panel);
        }
      }
    }
  }
}

template <class T, int kEdge>
size_t differentiate_bytes(const TiledBatch<T, kEdge>& in, const TiledBatch<T, kEdge>& grad_out) {
  return WorkspaceParts::bytes_of<T>(std::max(in.channels, grad_out.channels)) +
         WorkspaceParts::bytes_of<float>(TilePoints::values(in.channels)) +
         WorkspaceParts::bytes_of<float>(TilePoints::values(grad_out.channels)) +
         WorkspaceParts::bytes_of<float>(blocks_of(in, grad_out) * kBlock);
}

template <int kFilter, class T>
void differentiate_shards(Stream& stream,
                          const Shards& shards,
                          const Conv2dBackwardWeightArgs& args) {
  const auto batch = [&](const Tensor& of, int64_t k) {
    return cut_into_tiles<T, kTile<kFilter>>(of, shards.begin(k), shards.count(k));
  };
  size_t most = 0;
  for (int64_t k = 0; k < shards.local(); ++k) {
    most = std::max(most, differentiate_bytes(batch(args.in, k), batch(args.grad_out, k)));
  }
  const Workspace workspace = stream.workspace(0, most);
  stream.fork(shards.local(), [&](int64_t k, int worker) {
    if (shards.count(k) == 0) return zero_leaf(args.grad_weight, k);
    differentiate<kFilter>(batch(args.in, k),
                           batch(args.grad_out, k),
                           WorkspaceParts(workspace.of(worker)),
                           shard_leaf(args.grad_weight, k));
  });
}

}  // namespace

void winograd_backward_weight(Stream& stream,
                              const Shards& shards,
                              const Conv2dBackwardWeightArgs& args) {
  dispatch_float(args.in.dtype(), [&]<class T>() {
    dispatch_filter(args.weight_shape,
                    [&]<int kFilter>() { differentiate_shards<kFilter, T>(stream, shards, args); });
  });
  if (args.grad_bias != nullptr && args.grad_bias->defined()) {
    add_bias_backward(stream, shards, args.grad_out, *args.grad_bias);
  }
}

}  // namespace lockstep::kernels::cpu_v3
#endif
