// Specification of kernels/pool/avg_pool2d.h in double. Images are NHWC, `pixels` = H*W.
#pragma once

#include <vector>

namespace lockstep::reference {

inline std::vector<double> global_avg_pool_forward(const std::vector<double>& in,
                                                   size_t images,
                                                   size_t channels,
                                                   size_t pixels) {
  std::vector<double> out(images * channels);
  for (size_t n = 0; n < images; ++n) {
    for (size_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (size_t p = 0; p < pixels; ++p) sum += in[(n * pixels + p) * channels + c];
      out[n * channels + c] = sum / static_cast<double>(pixels);
    }
  }
  return out;
}

inline std::vector<double> global_avg_pool_backward(const std::vector<double>& grad_out,
                                                    size_t images,
                                                    size_t channels,
                                                    size_t pixels) {
  std::vector<double> grad_in(images * pixels * channels);
  for (size_t n = 0; n < images; ++n) {
    for (size_t p = 0; p < pixels; ++p) {
      for (size_t c = 0; c < channels; ++c) {
        grad_in[(n * pixels + p) * channels + c] =
            grad_out[n * channels + c] / static_cast<double>(pixels);
      }
    }
  }
  return grad_in;
}

}  // namespace lockstep::reference
