// What the CPU bodies of ops over many tensors share: the tensors laid end to end make one range.
// Included by <op>_cpu.cpp files alone, as kernels/cpu_loops.h is.
#pragma once

#include <span>

#include "kernels/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {

// Calls body(slot, first, count) for each worker's part of each slot: elements
// [first, first + count) of slot.param. Only for loops whose elements do not depend on each other.
template <class Slot, class Body>
[[gnu::always_inline]] inline void for_slots(Stream& stream, std::span<Slot> slots, Body&& body) {
  int64_t numel = 0;
  for (const Slot& slot : slots) numel += slot.param.numel();
  for_ranges(stream, numel, [&](int64_t begin, int64_t end) {
    int64_t start = 0;
    for (Slot& slot : slots) {
      const int64_t size = slot.param.numel();
      const int64_t first = begin > start ? begin - start : 0;
      const int64_t last = end < start + size ? end - start : size;
      start += size;
      if (first < last) body(slot, first, last - first);
    }
  });
}

}  // namespace lockstep::kernels::LS_CPU
