// Runs the threads of a block as fibers: picks the next thread, and implements barriers.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/emulation/machine.h"
#include "tests/emulation/place.h"

namespace lockstep::emulation {

ThreadView view;
Counters counters;

namespace {

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

}  // namespace

bool same_place(const Location& a, const Location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::string_view(a.file_name()) == b.file_name());
}

std::string thread_text(const uint3& block, const uint3& thread) {
  return fmt::format("block ({},{},{}), thread ({},{},{})",
                     block.x,
                     block.y,
                     block.z,
                     thread.x,
                     thread.y,
                     thread.z);
}

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
  clocks_.resize(watches_accesses() ? threads_.size() : 0);
  permit(call.arguments.get(), call.argument_bytes, Memory::kArguments);
  begin_grid();
  for (const size_t number : block_order(size_t{grid.x} * grid.y * grid.z)) {
    run_block(number, dynamic_shared_bytes);
    if (!error_.empty()) break;
  }
  withdraw(call.arguments.get());
  if (error_.empty()) return;
  idle_.clear();
  for (Fiber* fiber : fibers_) {  // reset fibers that were in the middle of a kernel
    fiber->reset();
    idle_.push_back(fiber);
  }
  throw Fault(take_reports() + std::exchange(error_, {}) + "\n  in " + kernel_name(call));
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

  // Exactly that size, so that memory checkers detect an access beyond it. All bits are set: NaN in
  // every float type.
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
  // With kWarp a warp that was just woken may run far ahead of the others; otherwise any ready
  // thread may be next.
  window_ = schedule.order != Order::kRandom ? 1 : random_.below(2) == 0 ? kWarp : threads_.size();
  done_ = at_barrier_ = 0;
  for (unsigned i = 0; i < threads_.size(); ++i) {
    Thread& thread = threads_[i];
    thread.state = Progress::kNew;
    ready_.push_back(i);
  }
  for (unsigned i = 0; i < clocks_.size(); ++i) {
    clocks_[i] = {.thread = i};
    clocks_[i].lanes[threads_[i].lane] = 1;
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
    set_thread(self.block_number_, self.clock_of(*self.current_));
    self.call_->invoke(self.call_->arguments.get());
    set_thread(0, nullptr);
    self.finish();
  }
}

// Ends the current thread. Returns when this fiber is to run another thread.
void Machine::finish() {
  if (at_barrier_ > 0) {
    const auto waiting = std::ranges::find(threads_, Progress::kAtBarrier, &Thread::state);
    fail("a thread returned while another waits at __syncthreads", *waiting);
  }
  current_->state = Progress::kDone;
  ++done_;
  Fiber* const mine = current_->fiber;
  Thread* const next = pick();
  if (next == nullptr && done_ < threads_.size()) fail_in_deadlock();
  if (next != nullptr && next->state == Progress::kNew) {
    next->fiber = mine;
    return resume(*next);
  }
  idle_.push_back(mine);
  if (next == nullptr) return mine->switch_to(host_);
  resume(*next);
  mine->switch_to(*next->fiber);
}

// Suspends the current thread. Returns when the thread can continue.
void Machine::wait() {
  Thread* const me = current_;
  Thread* const next = pick();
  if (next == nullptr) fail_in_deadlock();
  if (next == me) return resume(*me);
  if (next->state == Progress::kNew) next->fiber = take_fiber();
  resume(*next);
  me->fiber->switch_to(*next->fiber);
}

void Machine::resume(Thread& thread) {
  current_ = &thread;
  thread.state = Progress::kReady;
  view.thread = thread.index;
  view.lane = thread.lane;
}

void Machine::wake(Thread& thread) {
  thread.state = Progress::kReady;
  ready_.push_back(thread.number);
}

Thread* Machine::pick() {
  if (ready_head_ == ready_.size()) return nullptr;
  if (schedule.order == Order::kForward) return &threads_[ready_[ready_head_++]];
  if (window_ > 1) {
    const size_t below_top = random_.below(std::min(window_, ready_.size()));
    std::swap(ready_.back(), ready_[ready_.size() - 1 - below_top]);
  }
  Thread* const next = &threads_[ready_.back()];
  ready_.pop_back();
  return next;
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
    current_->state = Progress::kAtBarrier;
    ++at_barrier_;
    if (done_ > 0) fail("__syncthreads after some threads of the block returned", *current_);
    if (at_barrier_ == threads_.size()) {
      for (const Thread& thread : threads_) {
        if (!same_place(thread.where, where)) {
          fail("threads meet at different __syncthreads", *current_, &thread);
        }
      }
      at_barrier_ = 0;
      ready_.clear();
      ready_head_ = 0;
      for (ThreadClock& clock : clocks_) ++clock.barriers;
      for (Thread& thread : threads_) wake(thread);
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
  barrier(where);  // no thread may vote again before all have counted
  if (vote == Vote::kCount) return static_cast<int>(count);
  return (vote == Vote::kAnd ? count == threads_.size() : count > 0) ? 1 : 0;
}

std::string Machine::text_of(const Thread& thread) const {
  std::string text = fmt::format("{}:{}, {}",
                                 thread.where.file_name(),
                                 thread.where.line(),
                                 thread_text(view.block, thread.index));
  if (thread.state == Progress::kInWarpOp) text += fmt::format(", mask {:08x}", thread.call.mask);
  return text;
}

void Machine::fail(const char* what, const Thread& thread, const Thread* other) {
  error_ = fmt::format("{}: {}", what, text_of(thread));
  if (other != nullptr) error_ += "\n  and " + text_of(*other);
  stop();
}

void Machine::fail_in_deadlock() {
  error_ = "threads wait for each other:";
  const Thread* last = nullptr;
  int places = 0;
  for (const Thread& thread : threads_) {
    if (thread.state != Progress::kAtBarrier && thread.state != Progress::kInWarpOp) continue;
    if (last != nullptr && same_place(last->where, thread.where)) continue;
    last = &thread;
    if (++places > 6) break;
    const bool at_barrier = thread.state == Progress::kAtBarrier;
    error_ += fmt::format(
        "\n  {}: {}", at_barrier ? "__syncthreads" : "a warp operation", text_of(thread));
  }
  stop();
}

void Machine::give_up(const std::string& why) {
  error_ = why;
  stop();
}

void Machine::stop() {
  current_->fiber->switch_to(host_);
  std::abort();  // an abandoned fiber is never resumed
}

Schedule schedule = schedule_from_environment();

void run_grid(const Call& call, dim3 grid, dim3 block, size_t dynamic_shared_bytes) {
  machine().run(call, grid, block, dynamic_shared_bytes);
  if (const std::string reports = take_reports(); !reports.empty())
    throw Fault(reports + "  in " + kernel_name(call));
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
void give_up(const std::string& why) {
  machine().give_up(why);
}
unsigned active_mask() {
  return machine().active_mask();
}

}  // namespace lockstep::emulation
