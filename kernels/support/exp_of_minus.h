// An exponential with the same bits on all devices. Floats is float or a vector of floats, Words is
// uint32_t or a vector of as many.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// exp(-y) for y >= 0, within a few roundings. 0 from y = 84 on, where products with it would be
// denormals, and for NaN.
template <class Floats, class Words>
LS_HOST_DEVICE Floats exp_of_minus(Floats y) {
  constexpr float kRounder = 0x1.8p23F;   // adding it leaves the nearest integer in the lowest bits
  constexpr float kLn2High = 0x1.63p-1F;  // few digits: products with it are exact
  constexpr float kLn2Low = -0x1.bd0106p-13F;
  const Floats shifted = kRounder - y * 0x1.715476p0F;  // 1 / ln(2)
  const Floats exponent = shifted - kRounder;
  const Floats rest = (-y - exponent * kLn2High) - exponent * kLn2Low;  // at most ln(2) / 2 from 0
  Floats sum = rest * 0.0013814466F + 0.008368781F;
  sum = sum * rest + 0.041668393F;
  sum = sum * rest + 0.1666652F;
  sum = sum * rest + 0.49999994F;
  const Floats power = sum * rest * rest + rest + 1.0F;
  const Words scaled = std::bit_cast<Words>(power) + (std::bit_cast<Words>(shifted) << 23U);
  return y < 84.0F ? std::bit_cast<Floats>(scaled) : Floats{};
}

}  // namespace lockstep::kernels
