// Output tensors that show which elements an op did not write.
#pragma once

#include <cstring>

#include "core/tensor.h"

namespace lockstep::testing {

// A tensor on the CPU with every bit set: NaN in floats, -1 in signed integers.
inline Tensor poisoned_tensor(const Shape& shape, Dtype dtype) {
  Tensor tensor = Tensor::empty(shape, dtype);
  if (tensor.numel() > 0) std::memset(tensor.bytes(), 0xff, tensor.nbytes());
  return tensor;
}

}  // namespace lockstep::testing
