// The internals of the scheduler: the threads of the running block, and the choice of the next
// thread when one has to wait.
#pragma once

#include <string>
#include <vector>

#include "tests/emulation/access_check.h"
#include "tests/emulation/engine.h"
#include "tests/emulation/fiber.h"

namespace lockstep::emulation {

constexpr unsigned kWarp = 32;

class Random {  // xorshift64
 public:
  void seed(uint64_t seed) { state_ = seed * 0x9e3779b97f4a7c15U | 1U; }
  size_t below(size_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ % bound;
  }

 private:
  uint64_t state_ = 1;
};

enum class Progress : uint8_t { kNew, kReady, kAtBarrier, kInWarpOp, kDone };

struct WarpCall {
  WarpOp op{};
  unsigned mask = 0;
  uint64_t value = 0;
  int argument = 0, width = 0;
};

struct Thread {
  uint3 index;
  unsigned number, lane;
  Progress state;
  Fiber* fiber;
  Location where;
  WarpCall call;
  uint64_t result;
};

class Machine {
 public:
  void run(const Call& call, dim3 grid, dim3 block, size_t dynamic_shared_bytes);

  void barrier(const Location& where);
  int vote(int predicate, Vote vote, const Location& where);
  uint64_t warp_op(const WarpCall& call, const Location& where);
  unsigned active_mask() const;
  // See engine.h.
  [[noreturn]] void give_up(const std::string& why);

 private:
  void run_block(size_t block, size_t dynamic_shared_bytes);
  std::vector<size_t> block_order(size_t blocks);
  static void fiber_main();
  void finish();
  void wait();
  void resume(Thread& thread);
  void wake(Thread& thread);
  Thread* pick();
  Fiber* take_fiber();
  void exchange(Thread& first, unsigned count, const WarpCall& call);
  uint64_t result_of(Thread& first, unsigned count, unsigned lane);
  bool is_in_same_operation(const Thread& other);
  std::string text_of(const Thread& thread) const;
  // Each of these ends the grid: run() throws. Objects on this fiber's stack are not destroyed, so
  // no caller may own memory.
  [[noreturn]] void fail(const char* what, const Thread& thread, const Thread* other = nullptr);
  [[noreturn]] void fail_in_deadlock();
  [[noreturn]] void stop();

  // Null where nobody watches.
  ThreadClock* clock_of(const Thread& thread) {
    return clocks_.empty() ? nullptr : &clocks_[thread.number];
  }

  // Runs the body of an emulated operation, whose accesses are not attributed to the kernel.
  template <class Body>
  void outside(Body&& body) {
    set_thread(0, nullptr);
    body();
    set_thread(block_number_, clock_of(*current_));
  }

  const Call* call_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<ThreadClock> clocks_;  // apart: they are large, and unused without the access check
  std::vector<unsigned> ready_;
  size_t ready_head_ = 0;  // Order::kForward uses ready_ as a queue, the others as a stack
  size_t window_ = 1;      // the next thread is one of this many at the top of the stack
  unsigned done_ = 0, at_barrier_ = 0, block_number_ = 0;
  Thread* current_ = nullptr;
  Fiber host_;
  std::vector<Fiber*> fibers_, idle_;
  std::string error_;
  Random random_;
};

Machine& machine();

bool same_place(const Location& a, const Location& b);

}  // namespace lockstep::emulation
