// Integer division that rounds up, and rounding up to a multiple.
#pragma once

namespace lockstep {

// Always inlined, because kernels are compiled for several x86-64 levels.
// Requires, here and below: 0 <= a, 1 <= b, and a + b - 1 does not overflow.
template <class Int>
[[gnu::always_inline]] constexpr Int ceil_div(Int a, Int b) {
  return (a + b - 1) / b;
}

// The smallest multiple of b that is not less than a.
template <class Int>
[[gnu::always_inline]] constexpr Int round_up(Int a, Int b) {
  return ceil_div(a, b) * b;
}

}  // namespace lockstep
