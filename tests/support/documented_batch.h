// The batch for which PyTorch's losses are documented. It is given as floats, since u8 images
// cannot represent it.
#pragma once

#include "core/tensor.h"

namespace lockstep::testing {

// x[k] = ((1103515245 k + 12345) mod 2^31) / 2^31, where k counts in row-major order.
inline Tensor documented_images(const Shape& shape) {
  Tensor row_major = Tensor::empty(shape, Dtype::kF32);
  for (int64_t k = 0; k < row_major.numel(); ++k) {
    const auto draw = (static_cast<uint64_t>(k) * 1103515245 + 12345) % (uint64_t{1} << 31);
    row_major.data<float>()[k] = static_cast<float>(static_cast<double>(draw) / 0x1p31);
  }
  return from_row_major(row_major);
}

// i mod 10.
inline Tensor documented_labels(int64_t n) {
  Tensor labels = Tensor::empty({n}, Dtype::kI32);
  for (int64_t i = 0; i < n; ++i) labels.data<int32_t>()[i] = static_cast<int32_t>(i % 10);
  return labels;
}

}  // namespace lockstep::testing
