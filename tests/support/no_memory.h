// Code that runs after memory has run out.
#pragma once

#include <cstddef>
#include <cstdlib>

#include <dlfcn.h>
#include <sys/resource.h>

namespace lockstep::testing {

// Sanitizers take memory of their own. Tests are compiled without them.
inline bool can_exhaust_memory() {
  return dlsym(RTLD_DEFAULT, "__asan_init") == nullptr &&
         dlsym(RTLD_DEFAULT, "__tsan_init") == nullptr;
}

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
