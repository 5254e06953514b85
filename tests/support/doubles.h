// Conversions between f32 tensors and the double arrays of tests/reference/.
#pragma once

#include <span>
#include <vector>

#include "core/tensor.h"

namespace lockstep::testing {

inline std::vector<double> doubles(const Tensor& tensor) {
  const std::span<const float> values = tensor.span<float>();
  return {values.begin(), values.end()};
}

}  // namespace lockstep::testing
