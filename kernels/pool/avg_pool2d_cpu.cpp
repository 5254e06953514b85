#include "core/round_up.h"
#include "kernels/pool/avg_pool2d.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {
namespace {

constexpr int64_t kChannelsAtOnce = 1024;  // their sums stay in the L1 cache

[[gnu::always_inline]] inline Line divided(const Line& line, float divisor) {
  return Line::make([&](int64_t i) { return line.parts[i] / divisor; });
}

// Computes the means of `count` adjacent channels, at most kChannelsAtOnce. `end`: the image's end.
template <class T>
void mean_of_pixels(
    const T* first, const T* end, int64_t pixels, int64_t channels, int64_t count, T* mean) {
  float sums[kChannelsAtOnce];
  std::fill_n(sums, round_up(count, kLineLanes), 0.0F);
  for (int64_t p = 0; p < pixels; ++p) {
    const T* pixel = first + p * channels;
    for (int64_t c = 0; c < count; c += kLineLanes) {
      // Lanes beyond `count` sum whatever follows in the image; their results are not used.
      const bool whole = end - pixel >= c + kLineLanes;
      const Line values = whole ? load_line(pixel + c) : load_part(pixel + c, count - c);
      store_line(load_line(sums + c) + values, sums + c);
    }
  }
  const auto divisor = static_cast<float>(pixels);
  map_lines(count, mean, [=](const Line& sum) { return divided(sum, divisor); }, sums);
}

struct Extent {
  int height, width;

  explicit Extent(const Shape& shape)
      : height(static_cast<int>(shape[2])), width(static_cast<int>(shape[3])) {}
  int64_t pixels() const { return int64_t{height} * width; }
};

// Loads a line at `from`, of which only `count` elements may exist.
template <class T>
[[gnu::always_inline]] inline Line load_at_most(const T* from, int64_t count) {
  return count >= kLineLanes ? load_line(from) : load_part(from, count);
}
template <class T>
[[gnu::always_inline]] inline void store_at_most(const Line& line, int64_t count, T* to) {
  if (count >= kLineLanes) return store_line(line, to);
  T part[kLineLanes];
  store_line(line, part);
  std::copy_n(part, count, to);
}

[[gnu::always_inline]] inline int64_t size_of(PoolSpan span) {
  return span.end - span.begin;
}

// For each pixel of `to` and each line of channels: line_of(y, x, load) is the result, where
// load(y, x) is the line of `from` there.
template <class T, class LineOf>
[[gnu::always_inline]] inline void for_lines(
    Stream& stream, const Shards& shards, const Tensor& source, Tensor& target, LineOf&& line_of) {
  const Extent in(source.shape());
  const Extent out(target.shape());
  const int64_t channels = source.shape()[1];
  const T* from = source.data<T>();
  T* to = target.data<T>();
  for_images(stream, shards, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* image = from + n * in.pixels() * channels;
      T* result = to + n * out.pixels() * channels;
      for (int y = 0; y < out.height; ++y) {
        for (int x = 0; x < out.width; ++x) {
          for (int64_t c = 0; c < channels; c += kLineLanes) {
            const auto load = [&](int iy, int ix) {
              return load_at_most(image + (int64_t{iy} * in.width + ix) * channels + c,
                                  channels - c);
            };
            store_at_most(line_of(y, x, load), channels - c, result + c);
          }
          result += channels;
        }
      }
    }
  });
}

}  // namespace

void global_avg_pool_forward(Stream& stream, const Shards& shards, const Tensor& in, Tensor& out) {
  const int64_t channels = in.shape()[1];
  const int64_t pixels = in.shape()[2] * in.shape()[3];
  dispatch_float(in.dtype(), [&]<class T>() {
    const T* from = in.data<T>();
    T* to = out.data<T>();
    for_images(stream, shards, [=](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        for (int64_t c = 0; c < channels; c += kChannelsAtOnce) {
          mean_of_pixels(from + n * pixels * channels + c,
                         from + (n + 1) * pixels * channels,
                         pixels,
                         channels,
                         std::min(kChannelsAtOnce, channels - c),
                         to + n * channels + c);
        }
      }
    });
  });
}

void global_avg_pool_backward(Stream& stream,
                              const Shards& shards,
                              const Tensor& grad_out,
                              Tensor& grad_in) {
  const int64_t channels = grad_in.shape()[1];
  const int64_t pixels = grad_in.shape()[2] * grad_in.shape()[3];
  const auto divisor = static_cast<float>(pixels);
  dispatch_float(grad_in.dtype(), [&]<class T>() {
    const T* from = grad_out.data<T>();
    T* to = grad_in.data<T>();
    for_images(stream, shards, [=](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        T* first = to + n * pixels * channels;
        map_lines(
            channels,
            first,
            [=](const Line& grad) { return divided(grad, divisor); },
            from + n * channels);
        for (int64_t p = 1; p < pixels; ++p) {
          std::copy_n(first, channels, first + p * channels);
        }
      }
    });
  });
}

void adaptive_avg_pool2d_forward(Stream& stream,
                                 const Shards& shards,
                                 const Tensor& in,
                                 Tensor& out) {
  const Extent from(in.shape());
  const Extent to(out.shape());
  dispatch_float(in.dtype(), [&]<class T>() {
    for_lines<T>(stream, shards, in, out, [=](int oy, int ox, auto&& load) {
      const PoolSpan rows = pool_span(oy, from.height, to.height);
      const PoolSpan columns = pool_span(ox, from.width, to.width);
      Line sum{};
      for (int y = rows.begin; y < rows.end; ++y) {
        for (int x = columns.begin; x < columns.end; ++x) sum = sum + load(y, x);
      }
      return divided(sum, static_cast<float>(size_of(rows) * size_of(columns)));
    });
  });
}

void adaptive_avg_pool2d_backward(Stream& stream,
                                  const Shards& shards,
                                  const Tensor& grad_out,
                                  Tensor& grad_in) {
  const Extent windows(grad_out.shape());
  const Extent image(grad_in.shape());
  dispatch_float(grad_in.dtype(), [&]<class T>() {
    for_lines<T>(stream, shards, grad_out, grad_in, [=](int y, int x, auto&& load) {
      const PoolSpan rows = pool_span(y, windows.height, image.height);
      const PoolSpan columns = pool_span(x, windows.width, image.width);
      Line sum{};
      for (int oy = rows.begin; oy < rows.end; ++oy) {
        const int64_t height = size_of(pool_span(oy, image.height, windows.height));
        for (int ox = columns.begin; ox < columns.end; ++ox) {
          const int64_t width = size_of(pool_span(ox, image.width, windows.width));
          sum = sum + divided(load(oy, ox), static_cast<float>(height * width));
        }
      }
      return sum;
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
