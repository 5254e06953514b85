#include "core/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/error.h"
#include "core/words.h"

namespace lockstep {
namespace {

uint64_t machine_memory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

rlim_t address_space_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

uint64_t address_space_in_use() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string text_of(uint64_t bytes) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();  // files claim more
  return size_text(static_cast<int64_t>(std::min(bytes, kMost)));
}

constexpr const char* kMoreMemory = "a machine with more memory, or a higher limit (ulimit -v)";

}  // namespace

uint64_t max_memory() {
  return std::min<uint64_t>(machine_memory(), address_space_limit());
}

std::string memory_text() {
  const rlim_t limit = address_space_limit();
  if (limit == RLIM_INFINITY) {
    return fmt::format("this machine has {} in all", text_of(machine_memory()));
  }
  return fmt::format("this process holds {} of address space, its limit is {} (ulimit -v)",
                     text_of(address_space_in_use()),
                     text_of(limit));
}

void require_memory(uint64_t bytes, const std::string& what) {
  if (bytes <= max_memory()) return;
  throw EnvironmentError(fmt::format("out of memory: {} takes {} bytes", what, bytes),
                         fmt::format("that is {}; {}", text_of(bytes), memory_text()),
                         kMoreMemory);
}

void require_address_space(size_t bytes, const char* what) {
  if (address_space_limit() == RLIM_INFINITY) return;
  void* const reserved =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) {
    throw EnvironmentError(fmt::format("out of memory: {} may take {}", what, text_of(bytes)),
                           memory_text(),
                           kMoreMemory);
  }
  munmap(reserved, bytes);
}

}  // namespace lockstep
