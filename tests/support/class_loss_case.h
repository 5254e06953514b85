// Inputs and results of classification losses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace lockstep::testing {

inline Tensor labels_of(const std::vector<int32_t>& values) {
  Tensor labels = Tensor::empty({static_cast<int64_t>(values.size())}, Dtype::kI32);
  std::ranges::copy(values, labels.data<int32_t>());
  return labels;
}

inline std::vector<int32_t> ints_of(const Tensor& tensor) {
  const auto values = tensor.span<const int32_t>();
  return {values.begin(), values.end()};
}

// Four images of ten classes in one shard, without memory.
struct DryClassLoss {
  static Tensor dry(const Shape& shape, Dtype dtype) {
    return Tensor::empty(shape, dtype, Device::kDry);
  }

  Tensor logits = dry({4, 10}, Dtype::kF32), labels = dry({4}, Dtype::kI32);
  Tensor losses = dry({4}, Dtype::kF32), rank = dry({4}, Dtype::kI32);
  Tensor leaves = dry({1}, Dtype::kF32), grad = dry({4, 10}, Dtype::kF32);
};

}  // namespace lockstep::testing
