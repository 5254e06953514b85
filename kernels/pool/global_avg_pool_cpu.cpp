#include "kernels/pool/global_avg_pool.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {
namespace {

constexpr int64_t kChannelsAtOnce = 1024;  // their sums stay in the first cache

[[gnu::always_inline]] inline Line divided(const Line& line, float divisor) {
  return Line::make([&](int64_t i) { return line.parts[i] / divisor; });
}

// Of `count` neighboring channels, at most kChannelsAtOnce. `end`: of the image.
template <class T>
void mean_of_pixels(
    const T* first, const T* end, int64_t pixels, int64_t channels, int64_t count, T* mean) {
  float sums[kChannelsAtOnce];
  std::fill_n(sums, (count + kLineLanes - 1) / kLineLanes * kLineLanes, 0.0F);
  for (int64_t p = 0; p < pixels; ++p) {
    const T* pixel = first + p * channels;
    for (int64_t c = 0; c < count; c += kLineLanes) {
      // Lanes beyond `count` add what comes next in the image, and are not looked at.
      const bool whole = end - pixel >= c + kLineLanes;
      const Line values = whole ? load_line(pixel + c) : load_part(pixel + c, count - c);
      store_line(load_line(sums + c) + values, sums + c);
    }
  }
  const auto divisor = static_cast<float>(pixels);
  map_lines(count, mean, [=](const Line& sum) { return divided(sum, divisor); }, sums);
}

}  // namespace

void global_avg_pool_forward(Stream& stream, const Shards& shards, const Tensor& in, Tensor& out) {
  const int64_t channels = in.shape()[1];
  const int64_t pixels = in.shape()[2] * in.shape()[3];
  dispatch_float(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
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
  dispatch_float(grad_in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
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

}  // namespace lockstep::kernels::LS_CPU
