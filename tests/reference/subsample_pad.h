// Specification of kernels/pool/subsample_pad.h. Images are NHWC.
#pragma once

#include <vector>

namespace lockstep::reference {

struct SubsamplePadGeometry {
  size_t images, channels, height, width;  // of the input
  size_t out_channels, stride;

  size_t out_height() const { return (height + stride - 1) / stride; }
  size_t out_width() const { return (width + stride - 1) / stride; }

  // Calls body(index in input, index in output) for every input value that is copied to the output.
  template <class Body>
  void each(Body&& body) const {
    const size_t pad = (out_channels - channels) / 2;
    for (size_t n = 0; n < images; ++n) {
      for (size_t y = 0; y < height; y += stride) {
        for (size_t x = 0; x < width; x += stride) {
          for (size_t c = 0; c < channels; ++c) {
            const size_t from = ((n * height + y) * width + x) * channels + c;
            const size_t pixel = (n * out_height() + y / stride) * out_width() + x / stride;
            body(from, pixel * out_channels + pad + c);
          }
        }
      }
    }
  }
};

inline std::vector<double> subsample_pad_forward(const std::vector<double>& in,
                                                 const SubsamplePadGeometry& g) {
  std::vector<double> out(g.images * g.out_height() * g.out_width() * g.out_channels);
  g.each([&](size_t from, size_t to) { out[to] = in[from]; });
  return out;
}

inline std::vector<double> subsample_pad_backward(const std::vector<double>& grad_out,
                                                  const SubsamplePadGeometry& g) {
  std::vector<double> grad_in(g.images * g.height * g.width * g.channels);
  g.each([&](size_t from, size_t to) { grad_in[from] = grad_out[to]; });
  return grad_in;
}

}  // namespace lockstep::reference
