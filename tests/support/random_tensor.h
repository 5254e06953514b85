// Tensors of reproducible random values for tests.
#pragma once

#include "core/mt19937.h"
#include "core/tensor.h"

namespace lockstep::testing {

// f32 uniform in [low, high), on the CPU.
inline Tensor random_tensor(const Shape& shape, uint64_t seed, float low = -1, float high = 1) {
  Tensor tensor = Tensor::empty(shape, Dtype::kF32);
  Mt19937(seed).uniform(tensor.span<float>(), low, high);
  return tensor;
}

}  // namespace lockstep::testing
