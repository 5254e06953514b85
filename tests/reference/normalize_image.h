// Specification of kernels/image/normalize_image.h. It is exact: the f32 operations are those in
// the contract.
#pragma once

#include <cstdint>

namespace lockstep::reference {

inline float normalize_image(uint8_t in, float mean, float std) {
  const float scaled = static_cast<float>(in) / 255.0F;
  const float centered = scaled - mean;
  return centered / std;
}

}  // namespace lockstep::reference
