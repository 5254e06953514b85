// Code that runs after memory has run out.
#pragma once

#include <cstddef>
#include <cstdlib>

#include <sys/resource.h>

namespace lockstep::testing {

// Sanitizers take memory of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCanExhaustMemory = false;
#else
inline constexpr bool kCanExhaustMemory = true;
#endif

// From now on malloc finds no block of any size. For the child of a death test.
inline void exhaust_memory() {
  constexpr size_t kLargest = size_t{1} << 26;
  constexpr size_t kSmallest = 16;
  const rlimit none = {.rlim_cur = 1, .rlim_max = 1};
  setrlimit(RLIMIT_AS, &none);
  for (size_t bytes = kLargest; bytes >= kSmallest; bytes -= bytes > 1024 ? bytes / 2 : 16) {
    while (void* volatile block = std::malloc(bytes)) static_cast<void>(block);
  }
}

}  // namespace lockstep::testing
