#include "kernels/conv/winograd.h"

#if LS_ISA == 3
#include <algorithm>

#include "kernels/conv/winograd_f32_product.h"
#include "kernels/conv/winograd_images.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::cpu_v3 {
namespace {

constexpr int64_t kTilesAtOnce = 24;  // their points stay in the L2 cache

// Filters (K,C,3,3) or (K,C,5,5) as the right operands of products: [panel of outputs][point], each
// a RightPanel. In the forward pass inputs are C and outputs K. For backward data filters are
// rotated by 180 degrees and inputs are K.
template <class T>
struct Filters {
  const T* from;
  int64_t outputs, inputs;
  bool turned = false;
  const float* bias = nullptr;  // of the outputs; may be null
  float* packed = nullptr;

  // The distance in values from one point to the next, for a panel of `width` outputs.
  int64_t point_stride(int64_t width) const { return inputs * width + kApart; }
  float* panel(int64_t index) const { return packed + index * kPoints * point_stride(kPanel); }
  int64_t values() const { return panels_of(outputs) * kPoints * point_stride(kPanel); }
};

// The taps of a vector of outputs, [input][tap][output], of inputs from `first` on.
constexpr int64_t kInputsAtOnce = 16;
template <int kFilter>
using FilterBlock = float[kInputsAtOnce][kTaps<kFilter>][kLanes];

template <int kFilter, class T>
void load_filters(const Filters<T>& filters,
                  int64_t output,
                  int64_t first,
                  int64_t count,
                  FilterBlock<kFilter>& block) {
  for (int64_t k = 0; k < kLanes; ++k) {
    for (int64_t tap = 0; tap < kTaps<kFilter>; ++tap) {
      const T* const from =
          filters.from + ((output + k) * kTaps<kFilter> + tap) * filters.inputs + first;
      for (int64_t c = 0; c < count; ++c) block[c][tap][k] = static_cast<float>(from[c]);
    }
  }
}
template <int kFilter, class T>
void load_turned_filters(const Filters<T>& filters,
                         int64_t output,
                         int64_t first,
                         int64_t count,
                         FilterBlock<kFilter>& block) {
  constexpr int64_t kCount = kTaps<kFilter>;
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t tap = 0; tap < kCount; ++tap) {
      const int64_t place = ((first + c) * kCount + kCount - 1 - tap) * filters.outputs + output;
      store_vector(load_vector(filters.from + place), block[c][tap]);
    }
  }
}

template <int kFilter, class T>
void pack_panel(const Filters<T>& filters, int64_t panel) {
  const int64_t width = panel_width(filters.outputs, panel);
  const int64_t inputs = filters.inputs;
  const auto load = filters.turned ? load_turned_filters<kFilter, T> : load_filters<kFilter, T>;
  for (int64_t n = 0; n < width; n += kLanes) {
    const int64_t stride = RightPanel::row_stride(n, width);
    float* to = filters.panel(panel) + RightPanel::place(n, inputs);
    for (int64_t first = 0; first < inputs; first += kInputsAtOnce) {
      const int64_t count = std::min(kInputsAtOnce, inputs - first);
      FilterBlock<kFilter> block;
      load(filters, panel * kPanel + n, first, count, block);
      for (int64_t c = 0; c < count; ++c, to += stride) {
        transform_square<FilterLine<kFilter>>(
            [&] [[gnu::always_inline]] (int tap) { return load_vector(block[c][tap]); },
            [&] [[gnu::always_inline]] (int64_t point, Vector value) {
              store_vector(value, to + point * filters.point_stride(width));
            });
      }
    }
  }
}

// The distance in values from one point of kTilesAtOnce tiles to the next.
int64_t point_stride(int64_t channels) {
  return kTilesAtOnce * channels + kApart;
}

// Transforms inputs to points: [point][tile][channel].
template <class T, int kEdge>
void transform_windows(
    const TiledBatch<T, kEdge>& in, int64_t first, int64_t tiles, const T* zeros, float* points) {
  const int64_t stride = point_stride(in.channels);
  for (int64_t t = 0; t < tiles; ++t, points += in.channels) {
    const TilePixels<T, kEdge, kWindow> window(in, first + t, zeros);
    for (int64_t c = 0; c < in.channels; c += kLanes) {
      transform_square<WindowLine>(
          [&] [[gnu::always_inline]] (int pixel) { return load_vector(window.at[pixel] + c); },
          [&] [[gnu::always_inline]] (int64_t point, Vector value) {
            store_vector(value, points + point * stride + c);
          });
    }
  }
}

template <int kFilter, class T>
void write_outputs(const OutputPanel& panel, const TiledBatch<T, kTile<kFilter>>& shape, T* out) {
  constexpr int kEdge = kTile<kFilter>;
  for (int64_t t = 0; t < panel.tiles; ++t) {
    const TilePlace place(shape, panel.first_tile + t);
    const int64_t rows = std::min<int64_t>(kEdge, shape.height - place.y);
    const int64_t columns = std::min<int64_t>(kEdge, shape.width - place.x);
    T* const to = out + shape.place(place.image, place.y, place.x) + panel.first_channel;
    for (int64_t v = 0; v < panel.width; v += kLanes) {
      const float* const sums = panel.sums + t * kPanel + v;
      const Vector bias = panel.bias == nullptr ? Vector{} : load_vector(panel.bias + v);
      transform_square<OutputLine<kFilter>>(
          [&] [[gnu::always_inline]] (int point) {
            return load_vector(sums + point * kTilesAtOnce * kPanel);
          },
          [&] [[gnu::always_inline]] (int i, Vector value) {
            const int64_t y = i / kEdge, x = i % kEdge;
            if (y < rows && x < columns) {
              store_vector(value + bias, to + (y * shape.width + x) * shape.channels + v);
            }
          });
    }
  }
}

// Convolves images on one thread. out is like `in` except for its channels.
template <int kFilter, class T>
void convolve(const TiledBatch<T, kTile<kFilter>>& in,
              const Filters<T>& filters,
              WorkspaceParts scratch,
              T* out) {
  TiledBatch<T, kTile<kFilter>> out_shape = in;
  out_shape.channels = filters.outputs;
  T* const zeros = scratch.next<T>(in.channels);
  auto* const points = scratch.next<float>(kPoints * point_stride(in.channels));
  auto* const sums = scratch.next<float>(kPoints * kTilesAtOnce * kPanel);
  std::fill_n(zeros, in.channels, T{});
  for (int64_t first = 0; first < in.tiles(); first += kTilesAtOnce) {
    const int64_t tiles = std::min(kTilesAtOnce, in.tiles() - first);
    transform_windows(in, first, tiles, zeros, points);
    for (int64_t panel = 0; panel < panels_of(filters.outputs); ++panel) {
      const int64_t width = panel_width(filters.outputs, panel);
      for (int64_t i = 0; i < kPoints; ++i) {
        multiply<false>(tiles,
                        {points + i * point_stride(in.channels), in.channels, 1},
                        {filters.panel(panel) + i * filters.point_stride(width), width},
                        in.channels,
                        sums + i * kTilesAtOnce * kPanel);
      }
      write_outputs<kFilter>(
          {.sums = sums,
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

template <class T>
size_t convolve_bytes(int64_t channels) {
  return WorkspaceParts::bytes_of<T>(channels) +
         WorkspaceParts::bytes_of<float>(kPoints * point_stride(channels)) +
         WorkspaceParts::bytes_of<float>(kPoints * kTilesAtOnce * kPanel);
}

template <int kFilter, class T>
void convolve_batch(
    Stream& stream, const Shards& shards, const Tensor& in, Filters<T> filters, Tensor& out) {
  const Workspace workspace = stream.workspace(WorkspaceParts::bytes_of<float>(filters.values()),
                                               convolve_bytes<T>(filters.inputs));
  filters.packed = WorkspaceParts(workspace.shared).next<float>(filters.values());
  stream.fork(panels_of(filters.outputs),
              [&](int64_t panel, int) { pack_panel<kFilter>(filters, panel); });
  T* const to = out.data<T>();
  for_images(stream, shards, [&](int64_t begin, int64_t end, int worker) {
    convolve<kFilter>(cut_into_tiles<T, kTile<kFilter>>(in, begin, end - begin),
                      filters,
                      WorkspaceParts(workspace.of(worker)),
                      to + begin * out.shape().stride0());
  });
}

}  // namespace

void winograd_forward(Stream& stream, const Shards& shards, const Conv2dForwardArgs& args) {
  const Shape& weight = args.weight.shape();
  dispatch_float(args.in.dtype(), [&]<class T>() {
    const Filters<T> filters{.from = args.weight.data<T>(),
                             .outputs = weight[0],
                             .inputs = weight[1],
                             .bias = args.bias.defined() ? args.bias.data<float>() : nullptr};
    dispatch_filter(weight, [&]<int kFilter>() {
      convolve_batch<kFilter>(stream, shards, args.in, filters, args.out);
    });
  });
}

void winograd_backward_data(Stream& stream,
                            const Shards& shards,
                            const Tensor& grad_out,
                            const Tensor& weight,
                            const Conv2dParams&,
                            Tensor& grad_in) {
  dispatch_float(grad_in.dtype(), [&]<class T>() {
    const Filters<T> filters{.from = weight.data<T>(),
                             .outputs = weight.shape()[1],
                             .inputs = weight.shape()[0],
                             .turned = true};
    dispatch_filter(weight.shape(), [&]<int kFilter>() {
      convolve_batch<kFilter>(stream, shards, grad_out, filters, grad_in);
    });
  });
}

}  // namespace lockstep::kernels::cpu_v3
#endif
