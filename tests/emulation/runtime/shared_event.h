// An event whose state lies where other processes see it.
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
  // Another process's. Null: there is no such event.
  static std::shared_ptr<SharedEvent> open(const PagesHandle& handle);
  explicit SharedEvent(std::shared_ptr<SharedPages> pages) : pages_(std::move(pages)) {}

  const PagesHandle& handle() const { return pages_->handle(); }

  // A record was asked for: its number.
  uint64_t record(bool urgent) {
    state().urgent = urgent;
    return ++state().recorded;
  }
  uint64_t recorded() const { return state().recorded; }
  bool urgent() const { return state().urgent; }  // the last record's stream

  void pass(uint64_t number) { state().passed = number; }
  bool has_passed(uint64_t number) const { return state().passed >= number; }
  // A stream of another process has come to its wait.
  void want(uint64_t number) { state().wanted = number; }
  bool is_wanted() const { return state().wanted > state().passed; }

 private:
  struct State {
    std::atomic<uint64_t> recorded, passed, wanted;
    std::atomic<bool> urgent;
  };
  State& state() const { return *static_cast<State*>(pages_->memory()); }

  std::shared_ptr<SharedPages> pages_;
};

// A device runs whether its host waits for it or not, and lazy queues run when somebody waits: so
// this runs what streams of other processes wait for. While the host holds the runtime's lock and
// can go on no further it calls this itself; else a thread does, which the first exported event
// starts.
void run_what_others_wait_for();
void start_serving_others();

}  // namespace lockstep::emulation
