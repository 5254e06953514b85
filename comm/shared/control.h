// A rank's state in shared memory: how far it is, and which calls it has made.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "comm/operation.h"
#include "comm/shared/word.h"
#include "core/communicator.h"

namespace lockstep::comm {

// Sleeps while `word` holds `seen`, until a wake, for `at_most` at the longest. May return early.
void futex_wait(Word& word, uint32_t seen, std::chrono::nanoseconds at_most);

void futex_wake_all(Word& word);

// Counters wrap around: of two, the one up to 2^31 ahead is the later.
constexpr bool reached(uint32_t value, uint32_t target) {
  return static_cast<int32_t>(value - target) >= 0;
}

// A number that its rank raises and the others wait for. All zeros is a valid state.
struct alignas(64) Counter {
  Word value;
  Word sleepers;

  bool has_reached(uint32_t target) const {
    return reached(value.load(std::memory_order_acquire), target);
  }

  // For its rank alone. What that rank wrote before is visible to a rank that sees `target`.
  void raise_to(uint32_t target) {
    // Either this load sees the sleeper, or the sleeper's load below sees the new value: both pairs
    // are sequentially consistent.
    value.store(target, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) > 0) futex_wake_all(value);
  }

  // Sleeps unless `target` is reached; returns when the value changes, and at times for no reason.
  void sleep_below(uint32_t target, std::chrono::nanoseconds at_most) {
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = value.load(std::memory_order_seq_cst);
    if (!reached(seen, target)) futex_wait(value, seen, at_most);
    sleepers.fetch_sub(1, std::memory_order_relaxed);
  }
};

// A call in a form that ranks can compare: equal on all of them, or one has made another call.
struct alignas(64) CallRecord {
  static constexpr int32_t kNowhere = -1;

  uint64_t sequence = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;         // in the segment
  int32_t segment = kNowhere;  // that holds the values
  int32_t root = 0;
  Operation::Kind kind = Operation::Kind::kBarrier;
  Algorithm algorithm = Algorithm::kTree;
  Dtype dtype = Dtype::kU8;

  bool operator==(const CallRecord&) const = default;
};

// The counter and target that a sleeping rank waits for, so that the others can see who holds it
// up.
struct Waiting {
  Word on;      // 1 + 2 * rank, and 1 more for its phase in place of what it posted; 0: it goes on
  Word target;  // written first
};

// One rank's part of the control segment, written by that rank alone (sleepers excepted).
struct RankState {
  static constexpr uint32_t kRecords = 64;

  Counter posted;                            // calls entered
  Waiting waits;                             // for a peer's counter
  Word blames;                               // 1 + the rank for whose absence it gave up; 0: none
  Counter phase;                             // phases done, counted over all calls in order
  std::array<CallRecord, kRecords> records;  // call k is at k % kRecords from its posting on
};

}  // namespace lockstep::comm
