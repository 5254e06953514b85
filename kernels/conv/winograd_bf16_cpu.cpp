#include "kernels/conv/winograd.h"

#if LS_ISA == 4
#include <algorithm>

#include "kernels/conv/winograd_bf16_product.h"
#include "kernels/conv/winograd_bf16_tiles.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::cpu_v4 {
namespace {

constexpr int64_t kTilesAtOnce = 48;  // their points stay in the L2 cache

// Filters (K,C,3,3) as the right operands of products: [panel of outputs][point][pair of
// inputs][output]. In the forward pass inputs are C and outputs K. For backward data filters are
// rotated by 180 degrees and inputs are K.
struct Filters {
  const BFloat16* from;
  int64_t outputs, inputs;
  bool turned = false;
  const float* bias = nullptr;  // of the outputs; may be null
  BFloat16* packed = nullptr;

  BFloat16* panel(int64_t index) const { return packed + index * kPanel * kPoints * inputs; }
  int64_t values() const { return outputs * kPoints * inputs; }
};

// For the forward pass: the inputs of a pair are adjacent in memory.
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

// For backward data: the outputs of a pair are adjacent in memory.
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

// The distance in values from one point of kTilesAtOnce tiles to the next.
int64_t point_stride(int64_t channels) {
  return kTilesAtOnce * channels + kApart;
}

// Transforms inputs to points: [point][tile][channel].
LS_BF16_CODE void transform_windows(
    const TiledImages& in, int64_t first, int64_t tiles, const BFloat16* zeros, BFloat16* points) {
  const int64_t point = point_stride(in.channels);
  for (int64_t t = 0; t < tiles; ++t, points += in.channels) {
    const TileWindow window(in, first + t, zeros);
    for (int64_t c = 0; c < in.channels; c += kLineLanes) {
      const Points p = transformed(window, c);
#pragma GCC unroll 16
      for (int i = 0; i < kPoints; ++i) store_rounded(p.at[i], points + i * point + c);
    }
  }
}

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

// Convolves images on one thread. out is like `in` except for its channels.
void convolve(const TiledImages& in,
              const Filters& filters,
              WorkspaceParts scratch,
              BFloat16* out) {
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
  return WorkspaceParts::bytes_of<BFloat16>(channels) +
         WorkspaceParts::bytes_of<BFloat16>(kPoints * point_stride(channels)) +
         WorkspaceParts::bytes_of<float>(kPoints * kTilesAtOnce * kPanel);
}

void convolve_batch(
    Stream& stream, const Shards& shards, const Tensor& in, Filters filters, Tensor& out) {
  const Workspace workspace = stream.workspace(WorkspaceParts::bytes_of<BFloat16>(filters.values()),
                                               convolve_bytes(filters.inputs));
  filters.packed = WorkspaceParts(workspace.shared).next<BFloat16>(filters.values());
  stream.fork(panels_of(filters.outputs), [&](int64_t panel, int) {
    (filters.turned ? pack_turned_panel : pack_panel)(filters, panel);
  });
  BFloat16* const to = out.data<BFloat16>();
  for_images(stream, shards, [&](int64_t begin, int64_t end, int worker) {
    convolve(cut_into_tiles<BFloat16, kOutEdge>(in, begin, end - begin),
             filters,
             WorkspaceParts(workspace.of(worker)),
             to + begin * out.shape().stride0());
  });
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

}  // namespace lockstep::kernels::cpu_v4
#endif
