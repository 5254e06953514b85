#include "tests/emulation/nccl/world.h"

#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace lockstep::emulation {
namespace {

constexpr size_t kHeaderBytes = size_t{8} << 20;

int require(int result, const char* what) {
  if (result >= 0) return result;
  std::perror(what);
  std::abort();
}

}  // namespace

size_t World::bytes() {
  static_assert(sizeof(Header) <= kHeaderBytes);
  return kHeaderBytes + 2 * kMaxRanks * kOutboxBytes;
}

std::string World::create() {
  const int file = require(memfd_create("emulated_nccl", 0), "memfd_create");
  require(ftruncate(file, static_cast<off_t>(bytes())), "ftruncate");
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
}

World::World(const std::string& where) {
  const int file = require(open(where.c_str(), O_RDWR | O_CLOEXEC), where.c_str());
  memory_ = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  require(memory_ == MAP_FAILED ? -1 : 0, "mmap");
  close(file);
}

World::~World() {
  munmap(memory_, bytes());
}

std::byte* World::outbox(int rank, uint64_t number) {
  const auto box = static_cast<size_t>(rank) * 2 + number % 2;
  return static_cast<std::byte*>(memory_) + kHeaderBytes + box * kOutboxBytes;
}

}  // namespace lockstep::emulation
