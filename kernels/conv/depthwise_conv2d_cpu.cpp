#include <algorithm>

#include "kernels/conv/depthwise_conv2d.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_tile.h"
#include "kernels/support/cpu/widen.h"

namespace lockstep::kernels::LS_CPU {
namespace {

// Calls body(c) for consecutive ranges [c, c + kCount) of channels, as long as they fit.
template <int kCount, class Body>
[[gnu::always_inline]] inline int64_t for_channels(int64_t begin, int64_t channels, Body&& body) {
  int64_t c = begin;
  for (; c + kCount <= channels; c += kCount) body(c);
  return c;
}

// The extents of source, filter and result along one axis.
struct Axis {
  int64_t source, taps, result;
  int stride, pad;

  // Calls visit(position in the source, tap) for each tap of result `i` that is not in the padding.
  template <bool kForward, class Visit>
  [[gnu::always_inline]] void visit(int64_t i, Visit&& visit) const {
    const int64_t first = kForward ? i * stride - pad : (i + pad) / stride;
    const int64_t step = kForward ? 1 : stride;
    int64_t at = first;
    for (int64_t tap = kForward ? 0 : (i + pad) % stride; tap < taps; tap += step) {
      if (at >= 0 && at < source) visit(at, tap);
      at += kForward ? 1 : -1;
    }
  }
};

struct Window {
  Axis rows, columns;
  int64_t channels;
};

// The indices of a product's factors in the source image and in the filter.
struct Product {
  int64_t pixel, tap;
};
constexpr int kMaxProducts = 1024;  // as many as taps

// filters[tap][channel]
void filters_by_tap(const Tensor& weight, float* filters) {
  const int64_t channels = weight.shape()[0];
  const int64_t taps = weight.shape().stride0();
  dispatch_float(weight.dtype(), [&]<class T>() {
    const auto* from = weight.data<T>();
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t c = 0; c < channels; ++c) {
        filters[tap * channels + c] = static_cast<float>(from[c * taps + tap]);
      }
    }
  });
}

size_t bytes_of(int64_t floats) {
  return static_cast<size_t>(floats) * sizeof(float);
}

size_t image_bytes(const Tensor& batch) {
  return static_cast<size_t>(batch.shape().stride0()) * size_of(batch.dtype());
}

// Floats of scratch memory for image().
int64_t scratch_of_image(const Tensor& batch) {
  return batch.dtype() == Dtype::kF32 ? 0 : batch.shape().stride0();
}
// Returns image n as floats: in place if the batch is f32, else in the scratch memory.
const float* image(const Tensor& batch, int64_t n, float* scratch) {
  const std::byte* from = batch.bytes() + image_bytes(batch) * static_cast<size_t>(n);
  if (batch.dtype() == Dtype::kF32) return reinterpret_cast<const float*>(from);
  widen(batch.dtype(), from, batch.shape().stride0(), scratch);
  return scratch;
}

template <int kCount>
[[gnu::always_inline]] inline void sum_products(const Product* products,
                                                int count,
                                                int64_t channels,
                                                const float* source,
                                                const float* filters,
                                                float* result) {
  using Floats = typename Vectors<kCount>::Floats;
  Floats sum{};
  for (int i = 0; i < count; ++i) {
    sum += load_as<Floats>(source + products[i].pixel * channels) *
           load_as<Floats>(filters + products[i].tap * channels);
  }
  store_as(result, sum);
}

// Writes one row of an image of results. Each result gathers its products: outputs from inputs
// forward, inputs from outputs backward.
template <bool kForward>
void gather_row(
    Window window, int64_t y, const float* source, const float* filters, float* result) {
  const Axis rows = window.rows, columns = window.columns;
  const int64_t channels = window.channels;
  Product products[kMaxProducts];
  for (int64_t x = 0; x < columns.result; ++x, result += channels) {
    int count = 0;
    rows.visit<kForward>(y, [&](int64_t row, int64_t r) {
      columns.visit<kForward>(x, [&](int64_t column, int64_t s) {
        products[count++] = {row * columns.source + column, r * columns.taps + s};
      });
    });
    const auto sum = [&]<int kCount>(int64_t c) {
      sum_products<kCount>(products, count, channels, source + c, filters + c, result + c);
    };
    const int64_t rest = for_channels<kVectorLanes>(
        0, channels, [&](int64_t c) { sum.template operator()<kVectorLanes>(c); });
    for_channels<1>(rest, channels, [&](int64_t c) { sum.template operator()<1>(c); });
  }
}

template <bool kForward>
void gather(Stream& stream,
            const Shards& shards,
            const Window& window,
            const Tensor& source,
            const Tensor& weight,
            Tensor& result) {
  const int64_t row = window.columns.result * window.channels;  // floats
  const Dtype dtype = result.dtype();
  const int64_t image_floats = scratch_of_image(source);
  const Workspace workspace = stream.workspace(
      bytes_of(weight.numel()), dtype == Dtype::kF32 ? 0 : bytes_of(image_floats + row));
  auto* filters = reinterpret_cast<float*>(workspace.shared);
  filters_by_tap(weight, filters);
  for_images(stream, shards, [&](int64_t begin, int64_t end, int worker) {
    auto* widened = reinterpret_cast<float*>(workspace.of(worker));
    for (int64_t n = begin; n < end; ++n) {
      const float* from = image(source, n, widened);
      std::byte* to = result.bytes() + image_bytes(result) * static_cast<size_t>(n);
      for (int64_t y = 0; y < window.rows.result; ++y) {
        const bool direct = dtype == Dtype::kF32;
        float* sums = direct ? reinterpret_cast<float*>(to) : widened + image_floats;
        gather_row<kForward>(window, y, from, filters, sums);
        if (!direct) narrow(sums, row, dtype, to);
        to += static_cast<size_t>(row) * size_of(dtype);
      }
    }
  });
}

struct Range {
  int64_t begin, end;
};

// The range of outputs whose tap `tap` is not in the padding.
Range outputs_under(const Axis& axis, int64_t tap) {
  Range range{0, axis.result};
  while (range.begin < range.end && range.begin * axis.stride + tap < axis.pad) ++range.begin;
  while (range.begin < range.end && (range.end - 1) * axis.stride + tap - axis.pad >= axis.source) {
    --range.end;
  }
  return range;
}

// sums[c] += sum over `count` outputs, from left to right, of in * grad_out.
template <int kCount>
[[gnu::always_inline]] inline void add_row(const float* in,
                                           int64_t in_step,
                                           const float* grad_out,
                                           int64_t step,
                                           int64_t count,
                                           float* sums) {
  using Floats = typename Vectors<kCount>::Floats;
  Floats sum{};
  for (int64_t i = 0; i < count; ++i) {
    sum += load_as<Floats>(in + i * in_step) * load_as<Floats>(grad_out + i * step);
  }
  store_as(sums, load_as<Floats>(sums) + sum);
}

// sums[tap][channel] += the products of one image, in order of the output's rows.
void add_image(const Window& window, const float* in, const float* grad_out, float* sums) {
  const Axis &rows = window.rows, &columns = window.columns;
  const int64_t channels = window.channels;
  for (int64_t oy = 0; oy < rows.result; ++oy) {
    rows.visit<true>(oy, [&](int64_t y, int64_t r) {
      for (int64_t s = 0; s < columns.taps; ++s) {
        const Range range = outputs_under(columns, s);
        const int64_t x = range.begin * columns.stride - columns.pad + s;
        const float* from = in + (y * columns.source + x) * channels;
        const float* grad = grad_out + (oy * columns.result + range.begin) * channels;
        float* to = sums + (r * columns.taps + s) * channels;
        const auto add = [&]<int kCount>(int64_t c) {
          add_row<kCount>(from + c,
                          columns.stride * channels,
                          grad + c,
                          channels,
                          range.end - range.begin,
                          to + c);
        };
        const int64_t rest = for_channels<kVectorLanes>(
            0, channels, [&](int64_t c) { add.template operator()<kVectorLanes>(c); });
        for_channels<1>(rest, channels, [&](int64_t c) { add.template operator()<1>(c); });
      }
    });
  }
}

Window window_of(const Shape& source,
                 const Shape& weight,
                 const Shape& result,
                 const Conv2dParams& p) {
  return {.rows = {source[2], weight[2], result[2], p.stride_h, p.pad_h},
          .columns = {source[3], weight[3], result[3], p.stride_w, p.pad_w},
          .channels = weight[0]};
}

}  // namespace

void depthwise_conv2d_forward(Stream& stream,
                              const Shards& shards,
                              const Tensor& in,
                              const Tensor& weight,
                              const Conv2dParams& params,
                              Tensor& out) {
  const Window window = window_of(in.shape(), weight.shape(), out.shape(), params);
  gather<true>(stream, shards, window, in, weight, out);
}

void depthwise_conv2d_backward_data(Stream& stream,
                                    const Shards& shards,
                                    const Tensor& grad_out,
                                    const Tensor& weight,
                                    const Conv2dParams& params,
                                    Tensor& grad_in) {
  const Window window = window_of(grad_out.shape(), weight.shape(), grad_in.shape(), params);
  gather<false>(stream, shards, window, grad_out, weight, grad_in);
}

void depthwise_conv2d_backward_weight(Stream& stream,
                                      const Shards& shards,
                                      const Conv2dBackwardWeightArgs& args) {
  const Tensor &in = args.in, &grad_out = args.grad_out;
  const Shape& weight = args.weight_shape;
  const int64_t taps = weight.stride0();
  const Window window = window_of(in.shape(), weight, grad_out.shape(), args.params);
  const int64_t channels = window.channels;
  float* leaves = args.grad_weight.data<float>();
  const int64_t in_floats = scratch_of_image(in);
  const Workspace workspace =
      stream.workspace(0, bytes_of(weight.numel() + in_floats + scratch_of_image(grad_out)));
  stream.fork(shards.local(), [&](int64_t k, int worker) {
    auto* sums = reinterpret_cast<float*>(workspace.of(worker));
    float* widened = sums + weight.numel();
    std::fill_n(sums, taps * channels, 0.0F);
    for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) {
      add_image(window, image(in, n, widened), image(grad_out, n, widened + in_floats), sums);
    }
    float* leaf = leaves + k * weight.numel();
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t tap = 0; tap < taps; ++tap) leaf[c * taps + tap] = sums[tap * channels + c];
    }
  });
}

}  // namespace lockstep::kernels::LS_CPU
