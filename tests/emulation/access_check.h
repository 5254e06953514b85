// Watches each memory access of emulated kernels. Kernels of the check build are compiled with
// -fsanitize=thread, whose callbacks this defines in place of ThreadSanitizer: races within a block
// and between blocks, accesses out of bounds, after free, to host memory or misaligned, and reads
// of what was never written. Other builds link access_check_off.cpp, which does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::emulation {

// Orders one thread's accesses against those of its block: barriers passed, and for the lanes of
// its warp a vector clock that __syncwarp joins. Shuffles order no memory.
struct ThreadClock {
  unsigned thread = 0;
  unsigned barriers = 0;
  uint32_t lanes[32] = {};
};

enum class Memory : uint8_t { kDevice, kPinned, kShared, kArguments };

// Memory that kernels may touch. Fresh device memory counts as never written.
void permit(const void* begin, size_t bytes, Memory kind);
// Device memory that is withdrawn is remembered as freed.
void withdraw(const void* begin);
// The fibers' stacks, where anything goes.
void ignore_accesses(const void* begin, size_t bytes);
// A copy or a memset wrote here.
void note_written(const void* begin, size_t bytes);

// Between these two, accesses belong to the current thread of a grid.
void begin_grid();
void set_thread(unsigned block, const ThreadClock* clock);  // null: the scheduler runs
// The lanes in `mask` of the warp whose clocks start at `first`, `stride` bytes apart.
void join_lanes(ThreadClock* first, size_t stride, unsigned mask);

// One access of the instrumented code, by the current thread if there is one.
void note_access(const void* at, unsigned bytes, bool writes, const void* caller);

// Mistakes found since the last call, a line each.
std::string take_reports();

}  // namespace lockstep::emulation
