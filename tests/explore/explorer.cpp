#include "tests/explore/explorer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>

#include <cxxabi.h>
#include <fmt/format.h>
#include <ucontext.h>

#include "comm/shared/control.h"
#include "comm/shared/host.h"
#include "comm/shared/shared_communicator.h"
#include "tests/explore/choices.h"

namespace lockstep::explore {
namespace {

using Time = VirtualClock::time_point;

constexpr uint64_t kMaxAccesses = 5'000'000;  // an execution with more does not end

constexpr uint64_t kRareFault = 100;

struct Ended {};  // thrown in a rank that must not continue

enum class State : uint8_t { kReady, kAsleep, kStopped, kEnded };

// The exceptions that a rank is handling. The C++ runtime keeps this state per thread, so switching
// ranks swaps it.
using ExceptionState = std::array<std::byte, 2 * sizeof(void*)>;

void switch_exceptions(ExceptionState& from, const ExceptionState& to) {
  void* const here = abi::__cxa_get_globals();
  std::memcpy(from.data(), here, from.size());
  std::memcpy(here, to.data(), to.size());
}

constexpr size_t kStackBytes = size_t{256} << 10;

// The stack of a rank. The next execution reuses it.
std::byte* stack_of(size_t rank) {
  static std::vector<std::unique_ptr<std::byte[]>> stacks;  // NOLINT(modernize-avoid-c-arrays)
  while (stacks.size() <= rank) stacks.emplace_back(new std::byte[kStackBytes]);
  return stacks[rank].get();
}

struct Rank {
  State state = State::kReady;
  const void* asleep_on = nullptr;
  Time wake_at{};
  bool is_gone = false;
  ucontext_t context{};
  ExceptionState exceptions{};
};

// One execution of a scenario.
class World {
 public:
  World(const Scenario& scenario, Choices& choices)
      : scenario_(scenario), choices_(choices), ranks_(static_cast<size_t>(scenario.ranks)) {
    result.ranks.resize(ranks_.size());
  }

  void run();

  Execution result;
  std::string problem;
  uint64_t accesses = 0;

  void may_switch();
  void sleep_on(const void* word, Time until);
  void wake_all(const void* word);
  bool is_gone(int rank) const { return ranks_[static_cast<size_t>(rank)].is_gone; }
  Time now() const { return now_; }
  bool stop_requested(int rank) const {
    return scenario_.fault == Fault::kStopRequested && result.has_happened &&
           rank == scenario_.victim;
  }
  comm::Segment segment(size_t index, size_t bytes);

 private:
  Rank& me();
  static void prepare(ucontext_t& context, std::byte* stack);
  static void start();
  void body();
  void fault();
  void switch_to(size_t rank);
  void leave();  // switches to another rank, or ends the execution
  void end_all();

  const Scenario& scenario_;
  Choices& choices_;
  std::vector<Rank> ranks_;
  std::vector<comm::Segment> segments_;
  Time now_{std::chrono::seconds(1)};
  int ended_ = 0;
  bool is_over_ = false;  // ranks that run now only unwind
  ucontext_t outside_{};
  ExceptionState outside_exceptions_{};
};

World* world = nullptr;
int running = -1;  // the rank that runs

class ExploredHost : public comm::SharedHost {
 public:
  explicit ExploredHost(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool shares_cores() const override { return true; }
  comm::Segment allocate(size_t bytes_per_rank, const comm::Operation&) override {
    return world->segment(allocated_++, bytes_per_rank);
  }
  bool is_gone(int rank) override {
    return access([&] { return world->is_gone(rank); });
  }

 private:
  const int rank_;
  const int size_;
  size_t allocated_ = 0;
};

Rank& World::me() {
  return ranks_[static_cast<size_t>(running)];
}

comm::Segment World::segment(size_t index, size_t bytes) {
  if (index == segments_.size()) {
    const size_t stride = (bytes + 63) / 64 * 64;
    const std::shared_ptr<void> memory(
        ::operator new(stride * ranks_.size(), std::align_val_t(64)),
        [](void* block) { ::operator delete(block, std::align_val_t(64)); });
    auto* first = static_cast<std::byte*>(memory.get());
    std::fill_n(first, stride * ranks_.size(), std::byte{});
    comm::Segment made{.memory = memory, .parts = {}, .bytes = bytes};
    for (size_t r = 0; r < ranks_.size(); ++r) made.parts.push_back(first + r * stride);
    segments_.push_back(std::move(made));
  }
  return segments_[index];
}

void World::run() {
  world = this;
  for (size_t r = 0; r < ranks_.size(); ++r) prepare(ranks_[r].context, stack_of(r));
  running = static_cast<int>(choices_.choose(static_cast<uint32_t>(ranks_.size()), false));
  switch_exceptions(outside_exceptions_, me().exceptions);
  swapcontext(&outside_, &me().context);
  world = nullptr;
}

void World::prepare(ucontext_t& context, std::byte* stack) {
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = kStackBytes;
  makecontext(&context, &World::start, 0);
}

void World::start() {
  world->body();
}

void World::body() {
  const int rank = running;
  Outcome& outcome = result.ranks[static_cast<size_t>(rank)];
  try {
    if (is_over_) throw Ended();
    comm::SharedCommunicator peers(std::make_unique<ExploredHost>(rank, scenario_.ranks),
                                   scenario_.deadline);
    scenario_.part(peers);
    outcome.is_done = true;
  } catch (const CommError& error) {
    outcome.error = error;
  } catch (const Ended&) {
  } catch (const std::exception& error) {
    if (problem.empty()) problem = fmt::format("rank {}: {}", rank, error.what());
  }
  outcome.end = now_;
  outcome.order = ++ended_;
  me().is_gone = true;
  me().state = State::kEnded;
  leave();
}

void World::switch_to(size_t rank) {
  Rank& self = me();
  Rank& other = ranks_[rank];
  other.state = State::kReady;
  running = static_cast<int>(rank);
  if (&other == &self) return;
  switch_exceptions(self.exceptions, other.exceptions);
  swapcontext(&self.context, &other.context);
}

// No rank can run any more: the ranks that have not ended unwind their stacks, one after another.
void World::end_all() {
  is_over_ = true;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].state != State::kEnded) return switch_to(r);
  }
  switch_exceptions(me().exceptions, outside_exceptions_);
  setcontext(&outside_);
}

void World::leave() {
  if (is_over_) return end_all();
  std::vector<size_t> ready;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].state == State::kReady) ready.push_back(r);
  }
  if (ready.empty()) {  // let time pass
    Time next = Time::max();
    for (const Rank& rank : ranks_) {
      if (rank.state == State::kAsleep) next = std::min(next, rank.wake_at);
    }
    if (next == Time::max()) return end_all();
    now_ = std::max(now_, next);
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].state == State::kAsleep && ranks_[r].wake_at <= now_) ready.push_back(r);
    }
  }
  switch_to(ready[choices_.choose(static_cast<uint32_t>(ready.size()), false)]);
}

void World::fault() {
  result.has_happened = true;
  result.fault_at = now_;
  if (scenario_.fault == Fault::kStopRequested) return;
  if (scenario_.fault == Fault::kKilled) throw Ended();
  Rank& self = me();
  self.state = State::kStopped;
  leave();
  throw Ended();
}

void World::may_switch() {
  if (is_over_ || std::uncaught_exceptions() > 0) return;
  if (++accesses > kMaxAccesses) {
    if (problem.empty()) problem = "the execution does not end";
    is_over_ = true;
    throw Ended();
  }
  const auto mine = static_cast<size_t>(running);
  if (scenario_.fault != Fault::kNone && !result.has_happened && running == scenario_.victim &&
      choices_.choose(2, false, kRareFault) == 1) {
    fault();
  }
  std::vector<size_t> others;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const State state = ranks_[r].state;
    if (r != mine && (state == State::kReady || (state == State::kAsleep && ranks_[r].asleep_on)))
      others.push_back(r);
  }
  const uint32_t taken = choices_.choose(static_cast<uint32_t>(others.size() + 1), true, 16);
  if (taken == 0) return;
  switch_to(others[taken - 1]);
  if (is_over_) throw Ended();
}

void World::sleep_on(const void* word, Time until) {
  if (is_over_) throw Ended();
  Rank& self = me();
  self.state = State::kAsleep;
  self.asleep_on = word;
  self.wake_at = until;
  leave();
  if (is_over_) throw Ended();
}

void World::wake_all(const void* word) {
  for (Rank& rank : ranks_) {
    if (rank.state == State::kAsleep && rank.asleep_on == word) rank.state = State::kReady;
  }
}

}  // namespace

Report explore(const Scenario& scenario, const Bounds& bounds) {
  Choices choices(bounds.preemptions, bounds.seed);
  choices.replay(choices_of(bounds.replay));
  Report report;
  do {
    choices.begin();
    World execution(scenario, choices);
    execution.run();
    ++report.executions;
    report.accesses += execution.accesses;
    report.problem =
        execution.problem.empty() ? scenario.check(execution.result) : execution.problem;
    if (!report.problem.empty()) {
      report.order = choices.text();
      return report;
    }
    if (!bounds.replay.empty() || report.executions == bounds.executions) return report;
  } while (choices.next());
  report.is_complete = true;
  return report;
}

VirtualClock::time_point VirtualClock::now() {
  return world->now();
}

int this_rank() {
  return running;
}

bool stop_requested() {
  return world->stop_requested(running);
}

void busy_for(std::chrono::nanoseconds time) {
  world->sleep_on(nullptr, world->now() + time);
}

void report_problem(const std::string& what) {
  throw InternalError(what);
}

void may_switch() {
  world->may_switch();
}

}  // namespace lockstep::explore

namespace lockstep::comm {

void futex_wait(Word& word, uint32_t seen, std::chrono::nanoseconds at_most) {
  explore::may_switch();
  if (word.peek() == seen) explore::world->sleep_on(&word, explore::world->now() + at_most);
}

void futex_wake_all(Word& word) {
  explore::may_switch();
  explore::world->wake_all(&word);
}

}  // namespace lockstep::comm
