// Threads of a block as fibers: who runs next, barriers, and what the lanes of a warp exchange.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/emulation/access_check.h"
#include "tests/emulation/engine.h"
#include "tests/emulation/fiber.h"

namespace lockstep::emulation {

ThreadView view;
Counters counters;

namespace {

constexpr unsigned kWarp = 32;

Schedule schedule_from_environment() {
  const char* const text = std::getenv("LOCKSTEP_EMULATION_ORDER");
  const std::string order = text == nullptr ? "forward" : text;
  if (order == "forward") return {};
  if (order == "reverse") return {.order = Order::kReverse};
  if (order.starts_with("random:")) {
    return {.order = Order::kRandom, .seed = std::strtoull(order.c_str() + 7, nullptr, 10)};
  }
  fmt::print(stderr, "LOCKSTEP_EMULATION_ORDER={}: use forward, reverse or random:SEED\n", order);
  std::exit(2);
}

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

enum class State : uint8_t { kNew, kReady, kAtBarrier, kInWarpOp, kDone };

struct WarpCall {
  WarpOp op{};
  unsigned mask = 0;
  uint64_t value = 0;
  int argument = 0, width = 0;
};

struct Thread {
  uint3 index;
  unsigned number, lane;
  State state;
  Fiber* fiber;
  Location where;
  WarpCall call;
  uint64_t result;
  ThreadClock clock;
};

bool same_place(const Location& a, const Location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::string_view(a.file_name()) == b.file_name();
}

std::string text_of(const Location& where) {
  return fmt::format("{}:{}", where.file_name(), where.line());
}

class Machine {
 public:
  void run(const Call& call, dim3 grid, dim3 block, size_t dynamic_shared_bytes);

  void barrier(const Location& where);
  int vote(int predicate, Vote vote, const Location& where);
  uint64_t warp_op(const WarpCall& call, const Location& where);
  unsigned active_mask() const;

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
  uint64_t result_of(Thread& first, unsigned count, unsigned lane) const;
  void check_meeting(const Thread& other) const;
  std::string deadlock() const;
  std::string here() const;
  [[noreturn]] void fail(const std::string& what);

  // Body of an emulated operation: its own accesses are not the kernel's.
  template <class Body>
  void outside(Body&& body) {
    set_thread(0, nullptr);
    body();
    set_thread(block_number_, &current_->clock);
  }

  const Call* call_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<unsigned> ready_;
  size_t ready_head_ = 0;
  unsigned done_ = 0, at_barrier_ = 0, block_number_ = 0;
  Thread* current_ = nullptr;
  Fiber host_;
  std::vector<Fiber*> fibers_, idle_;
  std::string error_;
  Random random_;
};

Machine& machine() {
  static Machine& machine = *new Machine;  // fibers stay reachable for leak checkers
  return machine;
}

void Machine::run(const Call& call, dim3 grid, dim3 block, size_t dynamic_shared_bytes) {
  call_ = &call;
  random_.seed(schedule.seed + counters.grids);
  ++counters.grids;
  view.block_size = block;
  view.grid_size = grid;
  threads_.assign(size_t{block.x} * block.y * block.z, {});
  for (unsigned i = 0; i < threads_.size(); ++i) {
    threads_[i].index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    threads_[i].number = i;
    threads_[i].lane = i % kWarp;
  }
  permit(call.arguments.get(), call.argument_bytes, Memory::kArguments);
  begin_grid();
  for (const size_t number : block_order(size_t{grid.x} * grid.y * grid.z)) {
    run_block(number, dynamic_shared_bytes);
    if (!error_.empty()) break;
  }
  withdraw(call.arguments.get());
  if (error_.empty()) return;
  idle_.clear();
  for (Fiber* fiber : fibers_) {  // whatever they were in the middle of
    fiber->reset();
    idle_.push_back(fiber);
  }
  throw Fault(std::exchange(error_, {}) + "\n  in " + call.name);
}

std::vector<size_t> Machine::block_order(size_t blocks) {
  std::vector<size_t> order(blocks);
  for (size_t i = 0; i < blocks; ++i) order[i] = i;
  if (schedule.order == Order::kReverse) std::ranges::reverse(order);
  if (schedule.order == Order::kRandom) {
    for (size_t i = blocks; i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
  }
  return order;
}

void Machine::run_block(size_t block, size_t dynamic_shared_bytes) {
  const dim3 grid = view.grid_size;
  view.block = {static_cast<unsigned>(block % grid.x),
                static_cast<unsigned>(block / grid.x % grid.y),
                static_cast<unsigned>(block / grid.x / grid.y)};
  block_number_ = static_cast<unsigned>(block);
  ++counters.blocks;
  counters.threads += threads_.size();

  // Of exactly that size, so that memory checkers see an access beyond it; NaN in every float type.
  std::unique_ptr<std::byte, void (*)(void*)> shared(nullptr, std::free);
  if (dynamic_shared_bytes > 0) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 16, dynamic_shared_bytes) != 0) throw std::bad_alloc();
    shared.reset(static_cast<std::byte*>(memory));
    std::memset(memory, 0xff, dynamic_shared_bytes);
    permit(memory, dynamic_shared_bytes, Memory::kShared);
  }
  view.dynamic_shared = shared.get();

  ready_.clear();
  ready_head_ = 0;
  done_ = at_barrier_ = 0;
  for (unsigned i = 0; i < threads_.size(); ++i) {
    Thread& thread = threads_[i];
    thread.state = State::kNew;
    thread.clock = {};
    thread.clock.thread = i;
    thread.clock.lanes[thread.lane] = 1;
    const bool reverse = schedule.order == Order::kReverse;
    ready_.push_back(reverse ? static_cast<unsigned>(threads_.size()) - 1 - i : i);
  }
  Thread* const first = pick();
  first->fiber = take_fiber();
  resume(*first);
  host_.switch_to(*first->fiber);
  set_thread(0, nullptr);
  if (shared) withdraw(shared.get());
}

void Machine::fiber_main() {
  Machine& self = machine();
  for (;;) {
    set_thread(self.block_number_, &self.current_->clock);
    self.call_->invoke(self.call_->arguments.get());
    set_thread(0, nullptr);
    self.finish();
  }
}

// The current thread has returned. Comes back when this fiber is to run another one.
void Machine::finish() {
  if (at_barrier_ > 0) fail("a thread returned while others wait at __syncthreads: " + here());
  current_->state = State::kDone;
  ++done_;
  Fiber* const mine = current_->fiber;
  Thread* const next = pick();
  if (next == nullptr && done_ < threads_.size()) fail(deadlock());
  if (next != nullptr && next->state == State::kNew) {
    next->fiber = mine;
    return resume(*next);
  }
  idle_.push_back(mine);
  if (next == nullptr) return mine->switch_to(host_);
  resume(*next);
  mine->switch_to(*next->fiber);
}

// The current thread cannot go on. Comes back when it can.
void Machine::wait() {
  Thread* const me = current_;
  Thread* const next = pick();
  if (next == nullptr) fail(deadlock());
  if (next == me) return resume(*me);
  if (next->state == State::kNew) next->fiber = take_fiber();
  resume(*next);
  me->fiber->switch_to(*next->fiber);
}

void Machine::resume(Thread& thread) {
  current_ = &thread;
  thread.state = State::kReady;
  view.thread = thread.index;
  view.lane = thread.lane;
}

void Machine::wake(Thread& thread) {
  thread.state = State::kReady;
  ready_.push_back(thread.number);
}

Thread* Machine::pick() {
  if (ready_head_ == ready_.size()) return nullptr;
  if (schedule.order == Order::kRandom) {
    std::swap(ready_[ready_head_],
              ready_[ready_head_ + random_.below(ready_.size() - ready_head_)]);
  }
  return &threads_[ready_[ready_head_++]];
}

Fiber* Machine::take_fiber() {
  if (idle_.empty()) {
    fibers_.push_back(new Fiber(&Machine::fiber_main));
    return fibers_.back();
  }
  Fiber* const fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void Machine::barrier(const Location& where) {
  outside([&] {
    current_->where = where;
    current_->state = State::kAtBarrier;
    ++at_barrier_;
    if (done_ > 0) fail("__syncthreads after some threads of the block returned: " + here());
    if (at_barrier_ == threads_.size()) {
      for (const Thread& thread : threads_) {
        if (!same_place(thread.where, where)) {
          fail(fmt::format(
              "threads meet at different __syncthreads: {} and {}", here(), text_of(thread.where)));
        }
      }
      at_barrier_ = 0;
      ready_.clear();
      ready_head_ = 0;
      for (Thread& thread : threads_) {
        ++thread.clock.barriers;
        wake(thread);
      }
      if (schedule.order == Order::kReverse) std::ranges::reverse(ready_);
    }
    wait();
  });
}

int Machine::vote(int predicate, Vote vote, const Location& where) {
  current_->result = predicate != 0 ? 1 : 0;
  barrier(where);
  size_t count = 0;
  outside([&] {
    for (const Thread& thread : threads_) count += thread.result;
  });
  barrier(where);  // nobody votes again before all have counted
  if (vote == Vote::kCount) return static_cast<int>(count);
  return (vote == Vote::kAnd ? count == threads_.size() : count > 0) ? 1 : 0;
}

uint64_t Machine::warp_op(const WarpCall& call, const Location& where) {
  outside([&] {
    Thread& me = *current_;
    Thread& first = threads_[me.number - me.lane];
    const unsigned count = std::min(kWarp, static_cast<unsigned>(threads_.size()) - first.number);
    me.call = call;
    me.where = where;
    me.state = State::kInWarpOp;
    if ((call.mask >> me.lane & 1U) == 0) fail("a lane is not in its own mask: " + here());
    if (count < kWarp && call.mask >> count != 0)
      fail("the mask names lanes that the block does not have: " + here());
    bool complete = true;
    for (unsigned lane = 0; lane < count; ++lane) {
      if ((call.mask >> lane & 1U) == 0) continue;
      const Thread& other = (&first)[lane];
      if (other.state == State::kDone) fail("the mask names a lane that has returned: " + here());
      complete &= other.state == State::kInWarpOp;
      if (other.state == State::kInWarpOp) check_meeting(other);
    }
    if (complete) exchange(first, count, call);
    if (!complete || schedule.order == Order::kRandom) wait();
    current_->state = State::kReady;
  });
  return current_->result;
}

// Another lane that the current one names is in a warp operation: it must be this one.
void Machine::check_meeting(const Thread& other) const {
  const WarpCall& mine = current_->call;
  if (other.call.mask == mine.mask && other.call.op == mine.op &&
      same_place(other.where, current_->where)) {
    return;
  }
  machine().fail(
      fmt::format("lanes of one mask meet in different warp operations: {} mask {:08x}, "
                  "lane {} at {} mask {:08x}",
                  here(),
                  mine.mask,
                  other.lane,
                  text_of(other.where),
                  other.call.mask));
}

void Machine::exchange(Thread& first, unsigned count, const WarpCall& call) {
  if (call.op == WarpOp::kSync) join_lanes(&first.clock, sizeof(Thread), call.mask);
  for (unsigned i = 0; i < count; ++i) {
    const unsigned lane = schedule.order == Order::kReverse ? count - 1 - i : i;
    if ((call.mask >> lane & 1U) == 0) continue;
    Thread& thread = (&first)[lane];
    thread.result = result_of(first, count, lane);
    if (&thread != current_ || schedule.order == Order::kRandom) wake(thread);
  }
}

uint64_t Machine::result_of(Thread& first, unsigned count, unsigned lane) const {
  const WarpCall& call = (&first)[lane].call;
  const int own = static_cast<int>(lane);
  const int begin = own & ~(call.width - 1);
  const int end = begin + call.width;
  int source = own;
  switch (call.op) {
    case WarpOp::kSync:
      return 0;
    case WarpOp::kBallot: {
      uint64_t ballot = 0;
      for (unsigned i = 0; i < count; ++i) {
        if ((call.mask >> i & 1U) != 0) ballot |= (&first)[i].call.value << i;
      }
      return ballot;
    }
    case WarpOp::kShuffle:
      source = begin + (call.argument & (call.width - 1));
      break;
    case WarpOp::kShuffleUp:
      if (own - call.argument >= begin) source = own - call.argument;
      break;
    case WarpOp::kShuffleDown:
      if (own + call.argument < end) source = own + call.argument;
      break;
    case WarpOp::kShuffleXor:
      if ((own ^ call.argument) < end) source = own ^ call.argument;
      break;
  }
  if ((call.mask >> source & 1U) == 0)
    machine().fail("a shuffle reads a lane that is not in the mask: " + here());
  return (&first)[source].call.value;
}

unsigned Machine::active_mask() const {
  const Thread& first = threads_[current_->number - current_->lane];
  unsigned mask = 0;
  for (unsigned lane = 0; lane < kWarp && first.number + lane < threads_.size(); ++lane) {
    if ((&first)[lane].state != State::kDone) mask |= 1U << lane;
  }
  return mask;
}

std::string Machine::deadlock() const {
  std::string text = "threads wait for each other:";
  const Thread* last = nullptr;
  int places = 0;
  for (const Thread& thread : threads_) {
    if (thread.state != State::kAtBarrier && thread.state != State::kInWarpOp) continue;
    if (last != nullptr && same_place(last->where, thread.where)) continue;
    last = &thread;
    if (++places > 6) break;
    text += fmt::format("\n  thread {} at {} in {}",
                        thread.number,
                        text_of(thread.where),
                        thread.state == State::kAtBarrier ? "__syncthreads" : "a warp operation");
  }
  return text;
}

std::string Machine::here() const {
  return fmt::format("{}, block ({},{},{}), thread ({},{},{})",
                     text_of(current_->where),
                     view.block.x,
                     view.block.y,
                     view.block.z,
                     view.thread.x,
                     view.thread.y,
                     view.thread.z);
}

void Machine::fail(const std::string& what) {
  error_ = what;
  current_->fiber->switch_to(host_);
  std::abort();  // an abandoned fiber does not go on
}

}  // namespace

Schedule schedule = schedule_from_environment();

void run_grid(const Call& call, dim3 grid, dim3 block, size_t dynamic_shared_bytes) {
  machine().run(call, grid, block, dynamic_shared_bytes);
  if (const std::string reports = take_reports(); !reports.empty())
    throw Fault(reports + "  in " + call.name);
  note_kernel(call.kernel, block.x * block.y * block.z, dynamic_shared_bytes);
}

void block_barrier(const Location& where) {
  machine().barrier(where);
}
int block_vote(int predicate, Vote vote, const Location& where) {
  return machine().vote(predicate, vote, where);
}
uint64_t warp_op(
    WarpOp op, unsigned mask, uint64_t value, int argument, int width, const Location& where) {
  return machine().warp_op({op, mask, value, argument, width}, where);
}
unsigned active_mask() {
  return machine().active_mask();
}

}  // namespace lockstep::emulation
