// Specification of kernels/elementwise/fill.h.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::reference {

// `value` in the element type, as many times as there are elements; tests/reference/cast.h rounds
// for floats.
template <class T>
std::vector<T> fill(size_t count, T value) {
  return std::vector<T>(count, value);
}

}  // namespace lockstep::reference
