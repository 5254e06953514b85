// An event whose state is in memory that other processes can read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "tests/emulation/runtime/shared_pages.h"

struct CUevent_st;

namespace lockstep::emulation {

class SharedEvent {
 public:
  static std::shared_ptr<SharedEvent> create(int device);
  // Opens another process's event. Null: there is no such event.
  static std::shared_ptr<SharedEvent> open(const PagesHandle& handle);
  explicit SharedEvent(std::shared_ptr<SharedPages> pages) : pages_(std::move(pages)) {}

  const PagesHandle& handle() const { return pages_->handle(); }

  // Notes that a record was queued, and returns its number.
  uint64_t record(bool urgent) {
    state().urgent = urgent;
    return ++state().recorded;
  }
  uint64_t recorded() const { return state().recorded; }
  bool urgent() const { return state().urgent; }  // of the last record's stream

  void pass(uint64_t number) { state().passed = number; }
  bool has_passed(uint64_t number) const { return state().passed >= number; }
  // A stream of another process, or its host, waits for record `number`.
  void note_waiter(uint64_t number) { state().awaited = number; }
  bool has_waiter() const { return state().awaited > state().passed; }
  // Its own process destroys it. CUDA leaves open what the others' handles do then.
  void end() { state().ended = true; }
  bool ended() const { return state().ended; }

 private:
  struct State {
    std::atomic<uint64_t> recorded, passed, awaited;
    std::atomic<bool> urgent, ended;
  };
  State& state() const { return *static_cast<State*>(pages_->memory()); }

  std::shared_ptr<SharedPages> pages_;
};

// A real device makes progress whether or not its host waits, but lazy queues run only when
// somebody waits. This function runs the work that streams of other processes wait for. A host that
// holds the runtime's lock and cannot make progress calls it itself; otherwise a thread calls it,
// which the first exported event starts.
void run_awaited_work();
void start_serving_thread();

}  // namespace lockstep::emulation
