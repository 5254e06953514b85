// A fixed number of floats in vector registers, independent of the registers' width at this x86-64
// level.
// Included by *_cpu.cpp files alone: see cpu_loops.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/support/declare_op.h"

namespace lockstep::kernels::LS_CPU {

// The compiler's vector types. One register holds kVectorLanes floats.
inline constexpr int kVectorLanes = LS_ISA == 4 ? 16 : LS_ISA == 3 ? 8 : 4;
template <int kCount>
struct Vectors {
  using Floats [[gnu::vector_size(kCount * 4)]] = float;
  using Ints [[gnu::vector_size(kCount * 4)]] = int32_t;
  using Shorts [[gnu::vector_size(kCount * 2)]] = uint16_t;
  using Bytes [[gnu::vector_size(kCount)]] = uint8_t;
};

template <class Vector>
[[gnu::always_inline]] inline Vector load_as(const void* from) {
  Vector values;
  std::memcpy(&values, from, sizeof(values));
  return values;
}
template <class Vector>
[[gnu::always_inline]] inline void store_as(void* to, Vector values) {
  std::memcpy(to, &values, sizeof(values));
}

// Requires: kLanes a multiple of 16.
template <int64_t kLanes>
struct FloatTile {
  static constexpr int64_t kVectorLanes = LS_CPU::kVectorLanes;
  static constexpr int64_t kVectors = kLanes / kVectorLanes;
  using Vector [[gnu::vector_size(kVectorLanes * 4)]] = float;

  Vector parts[kVectors];

  // Returns {part(0), part(1), ...}. It is not a loop, with which the compiler would keep the tile
  // in memory.
  template <class Part>
  [[gnu::always_inline]] static FloatTile make(Part&& part) {
    return [&]<int64_t... i> [[gnu::always_inline]] (std::integer_sequence<int64_t, i...>) {
      return FloatTile{{part(i)...}};
    }(std::make_integer_sequence<int64_t, kVectors>{});
  }

  [[gnu::always_inline]] static FloatTile load(const float* from) {
    return make([=](int64_t i) {
      Vector vector;
      std::memcpy(&vector, from + i * kVectorLanes, sizeof(vector));
      return vector;
    });
  }
  [[gnu::always_inline]] void store(float* to) const {
    make([=, this](int64_t i) {
      std::memcpy(to + i * kVectorLanes, &parts[i], sizeof(Vector));
      return parts[i];
    });
  }

  [[gnu::always_inline]] friend FloatTile operator+(const FloatTile& a, const FloatTile& b) {
    return make([&](int64_t i) { return a.parts[i] + b.parts[i]; });
  }
  [[gnu::always_inline]] friend FloatTile operator-(const FloatTile& a, const FloatTile& b) {
    return make([&](int64_t i) { return a.parts[i] - b.parts[i]; });
  }
  [[gnu::always_inline]] friend FloatTile operator*(const FloatTile& a, const FloatTile& b) {
    return make([&](int64_t i) { return a.parts[i] * b.parts[i]; });
  }
  // gate <= 0 ? 0 : value
  [[gnu::always_inline]] friend FloatTile gated(const FloatTile& gate, const FloatTile& value) {
    return make([&](int64_t i) {
      Vector kept = value.parts[i];
#if LS_ISA == 4
      // Keeps GCC from loading it with the gate as a mask, which takes two to three times as long.
      asm("" : "+v"(kept));  // NOLINT(hicpp-no-assembler): no instruction
#endif
      return gate.parts[i] <= 0 ? Vector{} : kept;
    });
  }
};

}  // namespace lockstep::kernels::LS_CPU
