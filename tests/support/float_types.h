// Conversions between tensors of f32, f16 and bf16 and the double arrays of tests/reference/.
#pragma once

#include <span>
#include <vector>

#include "core/tensor.h"
#include "tests/reference/cast.h"

namespace lockstep::testing {

inline constexpr Dtype kFloatTypes[] = {Dtype::kF32, Dtype::kF16, Dtype::kBF16};

inline reference::FloatFormat format_of(Dtype dtype) {
  if (dtype == Dtype::kF16) return reference::kF16Format;
  if (dtype == Dtype::kBF16) return reference::kBF16Format;
  return reference::kF32Format;
}

// get and set convert one element by the scalar conversions of core/dtype.h.
inline void set(Tensor& tensor, int64_t i, double value) {
  const auto narrow = static_cast<float>(value);
  if (tensor.dtype() == Dtype::kF16) {
    tensor.data<Half>()[i] = Half(narrow);
  } else if (tensor.dtype() == Dtype::kBF16) {
    tensor.data<BFloat16>()[i] = BFloat16(narrow);
  } else {
    tensor.data<float>()[i] = narrow;
  }
}
inline double get(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == Dtype::kF16) return static_cast<float>(tensor.data<Half>()[i]);
  if (tensor.dtype() == Dtype::kBF16) return static_cast<float>(tensor.data<BFloat16>()[i]);
  return tensor.data<float>()[i];
}

inline Tensor tensor_of(std::span<const double> values, const Shape& shape, Dtype dtype) {
  Tensor tensor = Tensor::empty(shape, dtype);
  for (size_t i = 0; i < values.size(); ++i) set(tensor, static_cast<int64_t>(i), values[i]);
  return tensor;
}
inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = get(tensor, static_cast<int64_t>(i));
  return values;
}
// The exact values as f32, for close().
inline std::vector<float> floats_of(const Tensor& tensor) {
  const std::vector<double> values = values_of(tensor);
  return {values.begin(), values.end()};
}

// A copy rounded to `dtype`.
inline Tensor rounded_to(Dtype dtype, const Tensor& tensor) {
  return tensor_of(values_of(tensor), tensor.shape(), dtype);
}

}  // namespace lockstep::testing
