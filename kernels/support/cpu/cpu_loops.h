// Code that the CPU bodies share: dtype dispatch, loops divided among workers, and the test for
// infinities and NaNs. Included by <op>_cpu.cpp files alone: everything here is compiled once for
// each x86-64 level, so it lives in that level's namespace.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels::LS_CPU {

// Calls body.operator()<T>() with T = float, Half or BFloat16. The op has checked the dtype.
template <class Body>
[[gnu::always_inline]] inline void dispatch_float(Dtype dtype, Body&& body) {
  switch (dtype) {
    case Dtype::kF16:
      return body.template operator()<Half>();
    case Dtype::kBF16:
      return body.template operator()<BFloat16>();
    default:
      return body.template operator()<float>();
  }
}

// Below this a fork costs more than it saves.
inline constexpr int64_t kElementsPerFork = 16384;

// Calls body(begin, end) over [0, n), cut into one range per worker. Only for loops whose elements
// do not depend on each other. Ranges start at multiples of 16 elements.
template <class Body>
[[gnu::always_inline]] inline void for_ranges(Stream& stream, int64_t n, Body&& body) {
  if (n < kElementsPerFork || stream.threads() == 1) {
    body(int64_t{0}, n);
    return;
  }
  const int64_t parts = stream.threads();
  stream.fork(parts, [&](int64_t part, int) {
    const auto edge = [&](int64_t i) { return i == parts ? n : n / 16 * i / parts * 16; };
    body(edge(part), edge(part + 1));
  });
}

// Calls body(begin, end), or body(begin, end, worker), over ranges of the batch's images: one task
// per shard, so that a worker gets the same images as in library calls, or one range of images per
// worker if there are fewer shards than workers. Only for loops whose images do not depend on each
// other.
template <class Body>
[[gnu::always_inline]] inline void for_images(Stream& stream, const Shards& shards, Body&& body) {
  const auto call = [&](int64_t begin, int64_t end, int worker) {
    if constexpr (std::is_invocable_v<Body, int64_t, int64_t, int>) {
      body(begin, end, worker);
    } else {
      body(begin, end);
    }
  };
  if (shards.local() >= stream.threads()) {
    stream.fork(shards.local(),
                [&](int64_t k, int worker) { call(shards.begin(k), shards.begin(k + 1), worker); });
    return;
  }
  const int64_t parts = stream.threads();
  stream.fork(parts, [&](int64_t part, int worker) {
    call(shards.images() * part / parts, shards.images() * (part + 1) / parts, worker);
  });
}

// Returns 1 for infinities and NaNs, whose exponent bits are all ones, else 0. The result is as
// wide as the element, so that loops vectorize well.
[[gnu::always_inline]] inline uint32_t nonfinite_flag(float value) {
  return (std::bit_cast<uint32_t>(value) & 0x7f800000U) == 0x7f800000U ? 1 : 0;
}
[[gnu::always_inline]] inline uint16_t nonfinite_flag(Half value) {
  return (value.bits & 0x7c00U) == 0x7c00U ? 1 : 0;
}
[[gnu::always_inline]] inline uint16_t nonfinite_flag(BFloat16 value) {
  return (value.bits & 0x7f80U) == 0x7f80U ? 1 : 0;
}

}  // namespace lockstep::kernels::LS_CPU
