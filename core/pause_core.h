// A pause for loops that poll memory.
#pragma once

namespace lockstep {

// Some tens of nanoseconds in which a core's other thread, or its power, has the better of a loop.
inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // NOLINT(hicpp-no-assembler): "yield" takes no time on most of them
#endif
}

}  // namespace lockstep
