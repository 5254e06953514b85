// Runs a protocol between ranks in every order of its accesses to shared words, up to a bound.
// Ranks have stacks of their own and run one at a time; one may be put aside before and after each
// access.
// Time is the explorer's: it passes when all ranks sleep.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/communicator.h"
#include "core/error.h"

namespace lockstep::explore {

struct VirtualClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<VirtualClock>;
  static constexpr bool is_steady = true;
  static time_point now();
};

// One happens to one rank, at a moment of the explorer's choice.
enum class Fault : uint8_t {
  kNone,
  kKilled,   // it runs no more, and the others' hosts know that
  kStopped,  // it runs no more
  kAsked,    // a signal asks it to stop; see asked()
};

// How a rank came out of an execution.
struct Outcome {
  bool is_done = false;  // its part returned
  std::optional<CommError> error = std::nullopt;
  VirtualClock::time_point end = {};
  int order = 0;  // among the ends
};

struct Execution {
  std::vector<Outcome> ranks;
  bool has_happened = false;  // the fault
  VirtualClock::time_point fault_at = {};
};

struct Scenario {
  int ranks = 2;
  // A rank's part. What it throws but CommError is a find.
  std::function<void(Communicator& peers)> part;
  std::chrono::milliseconds deadline{1000};
  Fault fault = Fault::kNone;
  int victim = 0;
  // A sentence on what is wrong with an execution; empty: nothing.
  std::function<std::string(const Execution&)> check;
};

struct Bounds {
  int preemptions = 1;  // times that a rank is put aside although it could go on, or woken early
  uint64_t executions = 0;  // at most; 0: all within the preemptions
  uint64_t seed = 0;        // not 0: random orders, `executions` of them
  std::string replay = {};  // this order alone, as Report::order has it
};

struct Report {
  uint64_t executions = 0;
  uint64_t accesses = 0;
  bool is_complete = false;  // every order within the bounds
  std::string find = {};     // empty: none
  std::string order = {};    // of the find
};

Report explore(const Scenario& scenario, const Bounds& bounds);

// For a rank's part.
int this_rank();
// Whether Fault::kAsked has happened to this rank.
bool asked();
// Busy with something else.
void busy_for(std::chrono::nanoseconds time);
// The execution ends with this find.
[[noreturn]] void found(const std::string& what);

// For what takes the place of the product's words and futexes.
void may_switch();
template <class Body>
auto access(Body&& body) {
  may_switch();
  auto value = body();
  may_switch();
  return value;
}

}  // namespace lockstep::explore
