// The machine that runs emulated kernels: one fiber per CUDA thread, one block at a time, on the
// calling host thread. Kernels use it through device_language.h, the fake runtime through run_grid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <vector_types.h>

namespace lockstep::emulation {

using Location = std::source_location;

// The thread of the grid that is running. The scheduler writes it at each switch.
struct ThreadView {
  uint3 thread, block;
  dim3 block_size, grid_size;
  std::byte* dynamic_shared;
  unsigned lane;
};
extern ThreadView view;

// The order in which threads of a block, and blocks of a grid, run where the program does not
// determine it.
enum class Order : uint8_t { kForward, kReverse, kRandom };
struct Schedule {
  Order order = Order::kForward;
  uint64_t seed = 1;  // for kRandom
};
// From LOCKSTEP_EMULATION_ORDER: forward, reverse or random:SEED; forward when unset.
extern Schedule schedule;

// A kernel with its arguments, copied at the launch as CUDA does.
struct Call {
  std::shared_ptr<void> arguments;
  size_t argument_bytes = 0;
  void (*invoke)(void* arguments) = nullptr;
  const void* kernel = nullptr;  // its address, for note_kernel
  const char* op = "";           // that launched it
  const char* name = "";         // with types, for messages
};

// A kernel's mistake that in CUDA is a launch failure or undefined behavior.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Runs every thread of the grid. Errors: Fault; the grid is then left incomplete.
void run_grid(const Call& call, dim3 grid, dim3 block, size_t dynamic_shared_bytes);

// Grids, blocks and threads that have run in this process.
struct Counters {
  uint64_t grids, blocks, threads;
};
extern Counters counters;

// Records a kernel that ran. At exit the process writes one line per kernel to the file that
// LOCKSTEP_EMULATION_KERNELS names: the kernel's address in the program, its largest block and its
// largest dynamic shared memory. tools/cuda_symbols.py compares the file with what nvcc compiled.
void note_kernel(const void* kernel, unsigned threads, size_t dynamic_shared_bytes);

// The functions that implement device_language.h. Only kernels call them.
enum class WarpOp : uint8_t { kSync, kShuffle, kShuffleUp, kShuffleDown, kShuffleXor, kBallot };
enum class Vote : uint8_t { kCount, kAnd, kOr };
void block_barrier(const Location& where);
int block_vote(int predicate, Vote vote, const Location& where);
uint64_t warp_op(
    WarpOp op, unsigned mask, uint64_t value, int argument, int width, const Location& where);
unsigned active_mask();
// Ends the grid in the middle of a kernel: run_grid throws a Fault with this text.
[[noreturn]] void give_up(const std::string& why);
// "block (0,0,0), thread (0,0,0)".
std::string thread_text(const uint3& block, const uint3& thread);
// Reports an atomic operation on `bytes` bytes to the access check.
void note_atomic(const void* at, unsigned bytes, const void* caller);

template <class T>
uint64_t pack(const T& value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_destructible_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const void*>(&value), sizeof(T));
  return bits;
}
template <class T>
T unpack(uint64_t bits) {
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

// Not instrumented: the access check sees it as one atomic access.
template <class T, class Change>
[[gnu::noinline, gnu::no_sanitize("thread")]] T atomic_change(T* at, Change change) {
  note_atomic(at, sizeof(T), __builtin_return_address(0));
  const T old = *at;
  *at = change(old);
  return old;
}

}  // namespace lockstep::emulation
