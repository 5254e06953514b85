// Specification of kernels/image/normalize_image.h, exact: f32 steps as the contract names them.
#pragma once

#include <cstdint>

namespace lockstep::reference {

inline float normalize_image(uint8_t in, float mean, float std) {
  const float scaled = static_cast<float>(in) / 255.0F;
  const float centered = scaled - mean;
  return centered / std;
}

}  // namespace lockstep::reference
