// Records which kernels this process ran.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include <dlfcn.h>
#include <fmt/format.h>

#include "tests/emulation/engine.h"

namespace lockstep::emulation {
namespace {

struct Largest {
  unsigned threads = 0;
  size_t dynamic_shared_bytes = 0;
};

std::map<const void*, Largest>& kernels_run() {
  static auto& kernels = *new std::map<const void*, Largest>;  // outlives static objects
  return kernels;
}

void write_kernels_run() {
  const char* const path = std::getenv("LOCKSTEP_EMULATION_KERNELS");
  std::FILE* const file = std::fopen(path, "w");
  if (file == nullptr) {
    fmt::print(stderr, "LOCKSTEP_EMULATION_KERNELS={}: cannot be written\n", path);
    std::_Exit(5);
  }
  for (const auto& [kernel, largest] : kernels_run()) {
    Dl_info program{};
    dladdr(kernel, &program);
    const auto address =
        static_cast<const char*>(kernel) - static_cast<const char*>(program.dli_fbase);
    fmt::print(file, "{:#x} {} {}\n", address, largest.threads, largest.dynamic_shared_bytes);
  }
  std::fclose(file);
}

}  // namespace

void note_kernel(const void* kernel, unsigned threads, size_t dynamic_shared_bytes) {
  static const bool wanted =
      std::getenv("LOCKSTEP_EMULATION_KERNELS") != nullptr && std::atexit(write_kernels_run) == 0;
  if (!wanted) return;
  Largest& largest = kernels_run()[kernel];
  largest.threads = std::max(largest.threads, threads);
  largest.dynamic_shared_bytes = std::max(largest.dynamic_shared_bytes, dynamic_shared_bytes);
}

}  // namespace lockstep::emulation
