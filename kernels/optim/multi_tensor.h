// Loops of CPU bodies of ops over many tensors, which are treated as one concatenated range.
// Included by <op>_cpu.cpp files alone, as kernels/support/cpu/cpu_loops.h is.
#pragma once

#include <span>

#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

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

// Calls body in the same way, for blocks of at most kSlotBlock elements, which stay in the L1
// cache.
inline constexpr int64_t kSlotBlock = 2048;
template <class Slot, class Body>
[[gnu::always_inline]] inline void for_slot_blocks(Stream& stream,
                                                   std::span<Slot> slots,
                                                   Body&& body) {
  for_slots(stream, slots, [&](Slot& slot, int64_t first, int64_t count) {
    for (const int64_t end = first + count; first < end; first += kSlotBlock)
      body(slot, first, std::min(kSlotBlock, end - first));
  });
}

// Returns elements [first, first + count) of a gradient as floats times `factor`: in place if
// possible, else in `scratch`.
[[gnu::always_inline]] inline const float* unscaled(
    const Tensor& grad, int64_t first, int64_t count, float factor, float* scratch) {
  if (grad.dtype() == Dtype::kF32 && factor == 1) return grad.data<float>() + first;
  dispatch_float(grad.dtype(),
                 [=, &grad]<class T>() { convert(grad.data<T>() + first, count, scratch); });
  for (int64_t i = 0; i < count; ++i) scratch[i] *= factor;
  return scratch;
}

// copy[first + i] = param[first + i] rounded, i < count; nothing for an undefined copy.
[[gnu::always_inline]] inline void write_copy(const Tensor& param,
                                              int64_t first,
                                              int64_t count,
                                              Tensor& copy) {
  if (!copy.defined()) return;
  dispatch_float(copy.dtype(), [=, &param, &copy]<class T>() {
    convert(param.data<float>() + first, count, copy.data<T>() + first);
  });
}

}  // namespace lockstep::kernels::LS_CPU
