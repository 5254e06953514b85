// A byte of an image as a normalized float, bit for bit the CPU's.
#pragma once

#include <fmt/core.h>

#include "core/cuda/launch.h"
#include "kernels/image/normalize_image.h"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kMaxImageChannels = 64;

// Mean and standard deviation of each channel, as a kernel's argument.
struct Normalization {
  float mean[kMaxImageChannels], std[kMaxImageChannels];

  __device__ __forceinline__ float operator()(uint8_t byte, int channel) const {
    return (static_cast<float>(byte) / 255 - mean[channel]) / std[channel];
  }
};

// Errors: ShapeError for more than kMaxImageChannels channels.
inline Normalization normalization(const char* op,
                                   const NormalizeImageParams& params,
                                   int64_t channels) {
  if (channels > kMaxImageChannels) {
    throw ShapeError(fmt::format(
        "[{}] channels: got {}, expected {} at most on CUDA", op, channels, kMaxImageChannels));
  }
  Normalization table;
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    table.mean[c] = params.mean_of(c);
    table.std[c] = params.std_of(c);
  }
  return table;
}

}  // namespace
}  // namespace lockstep::kernels::cuda
