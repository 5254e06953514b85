// Watches each memory access of emulated kernels. Kernels of the check build are compiled with
// -fsanitize=thread; this code defines its callbacks in place of ThreadSanitizer. It finds races
// within and between blocks, accesses that are out of bounds, misaligned, after free or to host
// memory, and reads of memory that was never written. Other builds link access_check_off.cpp, which
// does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::emulation {

// Orders one thread's accesses against those of other threads of its block. It holds the number of
// barriers passed and, for the lanes of the thread's warp, a vector clock that __syncwarp joins.
// Shuffles do not order memory.
struct ThreadClock {
  unsigned thread = 0;
  unsigned barriers = 0;
  uint32_t lanes[32] = {};
};

enum class Memory : uint8_t { kDevice, kPinned, kShared, kArguments };

// Makes memory accessible to kernels. Fresh device memory counts as never written.
void permit(const void* begin, size_t bytes, Memory kind);
// Makes memory inaccessible again. Device memory is remembered as freed.
void withdraw(const void* begin);
// Accesses to this memory are not checked; used for the fibers' stacks.
void ignore_accesses(const void* begin, size_t bytes);
// Marks memory as written by a copy or a memset.
void note_written(const void* begin, size_t bytes);

// Whether anybody does.
bool watches_accesses();

// From begin_grid() on, accesses belong to the thread that set_thread() named last.
void begin_grid();
void set_thread(unsigned block, const ThreadClock* clock);  // null: the scheduler is running
// Joins the clocks of the lanes in `mask`. The warp's clocks start at `first`.
void join_lanes(ThreadClock* first, unsigned mask);

// Checks one access of instrumented code by the current thread, if there is one.
void note_access(const void* at, unsigned bytes, bool writes, const void* caller);

// Returns the mistakes found since the last call, one per line.
std::string take_reports();

}  // namespace lockstep::emulation
