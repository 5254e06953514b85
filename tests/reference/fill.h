// Specification of kernels/elementwise/fill.h.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::reference {

// `count` copies of `value`, which is in the element type; tests/reference/cast.h does the rounding
// for floats.
template <class T>
std::vector<T> fill(size_t count, T value) {
  return std::vector<T>(count, value);
}

}  // namespace lockstep::reference
