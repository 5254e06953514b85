// The rule by which a draw drops an element or a branch, and scales what stays. All devices and
// x86-64 levels share this definition.
#pragma once

#include <cstdint>

namespace lockstep::kernels {

struct DropRule {
  uint32_t first_kept;  // smaller draws drop
  float scale;          // factor of what stays; 0 for p = 1

  // Drops with probability p.
  [[gnu::always_inline]] constexpr explicit DropRule(double p)
      : first_kept(p < 1 ? static_cast<uint32_t>(p * 0x1p32) : 0),
        scale(p < 1 ? static_cast<float>(1 / (1 - p)) : 0) {}

  [[gnu::always_inline]] constexpr float factor(uint32_t draw) const {
    return draw < first_kept ? 0 : scale;
  }
};

}  // namespace lockstep::kernels
