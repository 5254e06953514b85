// Specification of kernels/elementwise/copy.h.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::reference {

inline std::vector<std::byte> copy(const std::vector<std::byte>& src) {
  return src;
}

}  // namespace lockstep::reference
