// Runs a protocol between ranks in every order of its accesses to shared words, up to a bound. Each
// rank has its own stack, and one rank runs at a time; it may be preempted before and after each
// access. Time is virtual: it passes only when all ranks sleep.
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

// A fault that happens to one rank, at a moment that the explorer chooses.
enum class Fault : uint8_t {
  kNone,
  kKilled,         // stops running, and the others' hosts report it as gone
  kStopped,        // stops running, unnoticed by the hosts
  kStopRequested,  // a signal requests a stop; see stop_requested()
};

// How an execution ended for one rank.
struct Outcome {
  bool is_done = false;  // the rank's function returned
  std::optional<CommError> error = std::nullopt;
  VirtualClock::time_point end = {};
  int order = 0;  // position among the ranks that ended, from 1
};

struct Execution {
  std::vector<Outcome> ranks;
  bool has_happened = false;  // whether the fault happened
  VirtualClock::time_point fault_at = {};
};

struct Scenario {
  int ranks = 2;
  // The function that each rank runs. Any exception other than CommError is a problem.
  std::function<void(Communicator& peers)> part;
  std::chrono::milliseconds deadline{1000};
  Fault fault = Fault::kNone;
  int victim = 0;
  // Describes what is wrong with an execution; empty if nothing is.
  std::function<std::string(const Execution&)> check;
};

struct Bounds {
  int preemptions = 1;      // switches away from a rank that could go on, or early wakeups
  uint64_t executions = 0;  // limit; 0: all orders within the preemptions
  uint64_t seed = 0;        // not 0: `executions` random orders
  std::string replay = {};  // only this order, a text from Report::order
};

struct Report {
  uint64_t executions = 0;
  uint64_t accesses = 0;
  bool is_complete = false;  // every order within the bounds was run
  std::string problem = {};  // empty: none
  std::string order = {};    // the order that shows the problem
};

Report explore(const Scenario& scenario, const Bounds& bounds);

// These functions are called from Scenario::part.
int this_rank();
// Whether Fault::kStopRequested has happened to this rank.
bool stop_requested();
// Sleeps for this long, like a rank that is busy with something else.
void busy_for(std::chrono::nanoseconds time);
// Ends the execution with this problem.
[[noreturn]] void report_problem(const std::string& what);

// For the replacements of comm's words and futexes.
void may_switch();
template <class Body>
auto access(Body&& body) {
  may_switch();
  auto value = body();
  may_switch();
  return value;
}

}  // namespace lockstep::explore
