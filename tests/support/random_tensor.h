// Tensors of reproducible random values.
#pragma once

#include "core/mt19937.h"
#include "core/tensor.h"

namespace lockstep::testing {

// An f32 tensor on the CPU, uniform in [low, high).
inline Tensor random_tensor(const Shape& shape, uint64_t seed, float low = -1, float high = 1) {
  Tensor tensor = Tensor::empty(shape, Dtype::kF32);
  Mt19937(seed).uniform(tensor.span<float>(), low, high);
  return tensor;
}

}  // namespace lockstep::testing
