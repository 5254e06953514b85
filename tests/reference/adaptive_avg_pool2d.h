// Specification of kernels/pool/avg_pool2d.h in double. Images are NHWC.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace lockstep::reference {

struct AdaptivePoolSizes {
  size_t images, channels, height, width, out_height, out_width;
};

// Calls visit(in element, out element, pixels of the window) for every pixel of every window,
// window after window in row-major order.
template <class Visit>
void for_window_pixels(const AdaptivePoolSizes& s, Visit&& visit) {
  const auto edge = [](size_t i, size_t size, size_t parts) {
    return static_cast<double>(i) * static_cast<double>(size) / static_cast<double>(parts);
  };
  const auto begin = [&](size_t i, size_t size, size_t parts) {
    return static_cast<size_t>(std::floor(edge(i, size, parts)));
  };
  const auto end = [&](size_t i, size_t size, size_t parts) {
    return static_cast<size_t>(std::ceil(edge(i + 1, size, parts)));
  };
  for (size_t n = 0; n < s.images; ++n) {
    for (size_t oy = 0; oy < s.out_height; ++oy) {
      for (size_t ox = 0; ox < s.out_width; ++ox) {
        const size_t y0 = begin(oy, s.height, s.out_height), y1 = end(oy, s.height, s.out_height);
        const size_t x0 = begin(ox, s.width, s.out_width), x1 = end(ox, s.width, s.out_width);
        for (size_t y = y0; y < y1; ++y) {
          for (size_t x = x0; x < x1; ++x) {
            for (size_t c = 0; c < s.channels; ++c) {
              visit(((n * s.height + y) * s.width + x) * s.channels + c,
                    ((n * s.out_height + oy) * s.out_width + ox) * s.channels + c,
                    static_cast<double>((y1 - y0) * (x1 - x0)));
            }
          }
        }
      }
    }
  }
}

inline std::vector<double> adaptive_avg_pool2d_forward(const std::vector<double>& in,
                                                       const AdaptivePoolSizes& s) {
  std::vector<double> out(s.images * s.out_height * s.out_width * s.channels);
  for_window_pixels(s, [&](size_t i, size_t o, double pixels) { out[o] += in[i] / pixels; });
  return out;
}

inline std::vector<double> adaptive_avg_pool2d_backward(const std::vector<double>& grad_out,
                                                        const AdaptivePoolSizes& s) {
  std::vector<double> grad_in(s.images * s.height * s.width * s.channels);
  for_window_pixels(s,
                    [&](size_t i, size_t o, double pixels) { grad_in[i] += grad_out[o] / pixels; });
  return grad_in;
}

}  // namespace lockstep::reference
