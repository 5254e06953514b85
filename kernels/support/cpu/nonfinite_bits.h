// Infinities and NaNs by their bits. Included by <op>_cpu.cpp files alone
// (kernels/support/cpu/cpu_loops.h).
#pragma once

#include <bit>
#include <cstdint>

#include "core/dtype.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels::LS_CPU {

// 1 for an exponent of ones, in the integer that keeps a loop's lanes as wide as its elements.
[[gnu::always_inline]] inline uint32_t bits_not_finite(float value) {
  return (std::bit_cast<uint32_t>(value) & 0x7f800000U) == 0x7f800000U ? 1 : 0;
}
[[gnu::always_inline]] inline uint16_t bits_not_finite(Half value) {
  return (value.bits & 0x7c00U) == 0x7c00U ? 1 : 0;
}
[[gnu::always_inline]] inline uint16_t bits_not_finite(BFloat16 value) {
  return (value.bits & 0x7f80U) == 0x7f80U ? 1 : 0;
}

}  // namespace lockstep::kernels::LS_CPU
