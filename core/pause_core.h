// A pause for loops that poll memory.
#pragma once

namespace lockstep {

// Pauses the loop for some tens of nanoseconds, which leaves the core to its other hardware thread
// and saves power.
inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // NOLINT(hicpp-no-assembler): "yield" takes no time on most of them
#endif
}

}  // namespace lockstep
