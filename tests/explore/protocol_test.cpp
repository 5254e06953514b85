// Tests the protocol of ranks that share memory in every order of its accesses up to a bound: sums
// are right, no rank waits forever, errors come in time and blame the right rank.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "comm/gradient_reducer.h"
#include "tests/explore/explorer.h"
#include "tests/support/known_gradients.h"

namespace lockstep::explore {
namespace {

using std::chrono::milliseconds;

constexpr VirtualClock::time_point kStart{std::chrono::seconds(1)};
constexpr milliseconds kDeadline{1000};
constexpr milliseconds kNotice{51};  // a sleeping rank checks for lost peers every 50 ms

void expect(bool holds, const std::string& what) {
  if (!holds) report_problem(fmt::format("rank {}: {}", this_rank(), what));
}

// A value that no other call or rank has. The values and their sums are exact in f32.
float value_of(int call, int rank) {
  return static_cast<float>(1 << (2 * rank)) + static_cast<float>(call) / 8;
}

float sum_of(int call, int ranks) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value_of(call, rank);
  return sum;
}

void expect_values(const Tensor& tensor, float value, const std::string& what) {
  for (const float got : tensor.span<float>()) {
    expect(got == value, fmt::format("{} gave {}, expected {}", what, got, value));
  }
}

void fill(Tensor& tensor, float value) {
  std::ranges::fill(tensor.span<float>(), value);
}

// Sums values in shared memory: two sums in progress at the same time, then two more in the same
// memory.
void overlapping_sums(Communicator& peers, Algorithm algorithm) {
  constexpr int64_t kCount = 5;
  std::vector<Tensor> places;
  for (int i = 0; i < 2; ++i) places.push_back(peers.allocate({kCount}, Dtype::kF32));
  for (int step = 0; step < 2; ++step) {
    std::vector<std::unique_ptr<Work>> works;
    for (int i = 0; i < 2; ++i) {
      fill(places[static_cast<size_t>(i)], value_of(2 * step + i, peers.rank()));
      works.push_back(peers.start_all_reduce(
          {.values = places[static_cast<size_t>(i)], .algorithm = algorithm}));
    }
    for (int i = 1; i >= 0; --i) {
      works[static_cast<size_t>(i)]->wait();
      expect_values(places[static_cast<size_t>(i)], sum_of(2 * step + i, peers.size()), "a sum");
    }
  }
}

// Calls on values in other memory, which are copied through the staging memory.
void staged_calls(Communicator& peers) {
  const int rank = peers.rank();
  for (int call = 0; call < 3; ++call) {
    Tensor values = Tensor::zeros({3}, Dtype::kF32);
    fill(values, value_of(call, rank));
    peers.all_reduce_sum(values.span<float>());
    expect_values(values, sum_of(call, peers.size()), "a staged sum");
    fill(values, value_of(call, rank));
    peers.broadcast(std::as_writable_bytes(values.span<float>()), call % peers.size());
    expect_values(values, value_of(call, call % peers.size()), "a broadcast");
    const int mine = 10 * call + rank;
    std::vector<int> all(static_cast<size_t>(peers.size()));
    peers.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    for (int r = 0; r < peers.size(); ++r) {
      expect(all[static_cast<size_t>(r)] == 10 * call + r, "a gathered value is another's");
    }
    std::vector<int64_t> counts = {call + 1};
    peers.all_reduce_sum(std::span(counts));
    expect(counts[0] == (call + 1) * peers.size(), "a sum of counts is wrong");
  }
  peers.barrier();
}

std::string all_are_done(const Execution& execution) {
  for (size_t rank = 0; rank < execution.ranks.size(); ++rank) {
    const Outcome& outcome = execution.ranks[rank];
    if (outcome.error) {
      return fmt::format("rank {}: {}: {}", rank, outcome.error->what(), outcome.error->why());
    }
    if (!outcome.is_done) return fmt::format("rank {} did not end", rank);
  }
  return "";
}

// No rank slept until its timeout: each was woken.
std::string all_are_done_at_once(const Execution& execution) {
  for (const Outcome& outcome : execution.ranks) {
    if (outcome.end > kStart) return "a rank slept on although what it waited for had happened";
  }
  return all_are_done(execution);
}

// Whether an error blames that rank: "rank 2 gave up waiting for rank 1" blames rank 1.
bool blames(const CommError& error, int rank) {
  constexpr std::string_view kBecause = "gave up waiting for ";
  const size_t because = error.why().find(kBecause);
  const std::string text = because == std::string::npos ? error.why() : error.why().substr(because);
  for (const char* form : {"rank {}", "ranks {},", ", {} "}) {
    if (text.find(fmt::format(fmt::runtime(form), rank)) != std::string::npos) return true;
  }
  return false;
}

// The other ranks end in time, either successfully or with an error that blames only the victim.
std::string blamed_alone(int victim, milliseconds at_most, const Execution& execution) {
  for (int rank = 0; rank < static_cast<int>(execution.ranks.size()); ++rank) {
    const Outcome& outcome = execution.ranks[static_cast<size_t>(rank)];
    if (rank == victim) continue;
    if (!outcome.is_done && !outcome.error) return fmt::format("rank {} did not end", rank);
    if (!outcome.error) continue;
    if (!execution.has_happened) return fmt::format("rank {}: {}", rank, outcome.error->what());
    if (outcome.end > execution.fault_at + at_most) {
      return fmt::format(
          "rank {} ended {} ms later", rank, (outcome.end - execution.fault_at) / milliseconds(1));
    }
    for (int other = 0; other < static_cast<int>(execution.ranks.size()); ++other) {
      if (blames(*outcome.error, other) != (other == victim)) {
        return fmt::format("rank {} says: {}", rank, outcome.error->why());
      }
    }
  }
  return "";
}

void expect_no_problem(const char* name, const Scenario& scenario, const Bounds& bounds) {
  const Report report = explore(scenario, bounds);
  fmt::print("{}, {} ranks: {} orders of {} accesses{}\n",
             name,
             scenario.ranks,
             report.executions,
             report.accesses,
             report.is_complete ? ", all within the bound" : "");
  EXPECT_GT(report.executions, 0U);
  EXPECT_EQ(report.problem, "") << "in the order " << report.order;
}

Scenario sums(int ranks, Algorithm algorithm) {
  return {.ranks = ranks,
          .part = [algorithm](Communicator& peers) { overlapping_sums(peers, algorithm); },
          .deadline = kDeadline,
          .check = all_are_done_at_once};
}

TEST(Protocol, SumsAreRightInEveryOrder) {
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing, Algorithm::kStar}) {
    expect_no_problem("sums", sums(2, algorithm), {.preemptions = 1});
    expect_no_problem("sums", sums(3, algorithm), {.preemptions = 0, .executions = 2000});
    expect_no_problem(
        "sums", sums(4, algorithm), {.preemptions = 20, .executions = 300, .seed = 1});
  }
}

TEST(Protocol, StagedCallsAreRightInEveryOrder) {
  Scenario scenario{
      .ranks = 2, .part = staged_calls, .deadline = kDeadline, .check = all_are_done_at_once};
  expect_no_problem("staged calls", scenario, {.preemptions = 1});
  scenario.ranks = 3;
  expect_no_problem("staged calls", scenario, {.preemptions = 20, .executions = 500, .seed = 2});
}

TEST(Protocol, OfAKilledRankTheOthersHearAtOnce) {
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing, Algorithm::kStar}) {
    Scenario scenario = sums(3, algorithm);
    scenario.fault = Fault::kKilled;
    scenario.victim = 1;
    scenario.check = [](const Execution& execution) { return blamed_alone(1, kNotice, execution); };
    expect_no_problem("a killed rank", scenario, {.preemptions = 0, .executions = 4000});
    expect_no_problem("a killed rank", scenario, {.preemptions = 20, .executions = 500, .seed = 3});
  }
}

TEST(Protocol, OfAStoppedRankTheOthersSayThatItIsMissing) {
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing, Algorithm::kStar}) {
    Scenario scenario = sums(3, algorithm);
    scenario.fault = Fault::kStopped;
    scenario.victim = 2;
    scenario.check = [](const Execution& execution) {
      return blamed_alone(2, kDeadline + kNotice, execution);
    };
    expect_no_problem("a stopped rank", scenario, {.preemptions = 0, .executions = 4000});
    expect_no_problem(
        "a stopped rank", scenario, {.preemptions = 20, .executions = 500, .seed = 4});
  }
}

// Steps with gradient sums until a rank was asked to stop: the number of steps that each rank took,
// and the step in which the signal came.
struct Stops {
  std::array<int, 3> after = {};
  int requested_in = -1;
};

void steps_until_stop(Communicator& peers, Stops& stops) {
  constexpr int kSteps = 3;
  const auto rank = static_cast<size_t>(peers.rank());
  testing::KnownGradients model(peers, peers.size());
  comm::GradientReducer reducer(peers,
                                model.stream,
                                model.parameters,
                                model.names,
                                {.caps = {1200, 600}, .ask = stop_requested});
  if (rank == 0) stops = {};
  int step = 0;
  bool stop = false;
  while (step < kSteps && !stop) {
    if (stop_requested() && stops.requested_in < 0) stops.requested_in = step;
    model.backward();
    reducer.finish();
    ++step;
    stop = reducer.any_said_yes();
    for (Var& parameter : model.parameters) parameter.set_grad({});
  }
  stops.after[rank] = step;
}

TEST(Protocol, AllRanksStopAfterTheSameStepAndAtMostOneLater) {
  Stops stops;
  Scenario scenario{.ranks = 2,
                    .part = [&](Communicator& peers) { steps_until_stop(peers, stops); },
                    .deadline = kDeadline,
                    .fault = Fault::kStopRequested,
                    .victim = 1,
                    .check = [&](const Execution& execution) -> std::string {
                      for (size_t r = 1; r < execution.ranks.size(); ++r) {
                        if (stops.after[r] == stops.after[0]) continue;
                        return fmt::format("stopped after steps {}", fmt::join(stops.after, ", "));
                      }
                      if (stops.requested_in >= 0 && stops.after[0] != stops.requested_in + 1) {
                        return fmt::format("asked before step {}, stopped after {}",
                                           stops.requested_in,
                                           stops.after[0]);
                      }
                      return all_are_done_at_once(execution);
                    }};
  expect_no_problem("a stop", scenario, {.preemptions = 1, .executions = 4000});
  scenario.ranks = 3;
  expect_no_problem("a stop", scenario, {.preemptions = 20, .executions = 500, .seed = 5});
}

// Rank 0 saves, and the other ranks wait for it in their next call.
struct SlowSave {
  int warnings = 0;
  SlowPart part{.doing = "saving", .limit = std::chrono::seconds(600), .tell = {}};
};

void save_for(std::chrono::seconds time, SlowSave& save, Communicator& peers) {
  if (peers.rank() == 0) save.warnings = 0;
  peers.enter(&save.part);
  if (peers.rank() == 0) busy_for(time);
  peers.barrier();
  peers.enter(nullptr);
  peers.barrier();
}

TEST(Protocol, ASlowPartIsWaitedForAndToldOnce) {
  SlowSave save;
  save.part.tell = [&](const std::string& note) {
    expect(note.starts_with("rank 0 is still saving"), note);
    ++save.warnings;
  };
  Scenario scenario{.ranks = 3,
                    .part = [&](Communicator& p) { save_for(std::chrono::seconds(30), save, p); },
                    .deadline = kDeadline,
                    .check =
                        [&](const Execution& execution) {
                          const std::string wrong = all_are_done(execution);
                          if (!wrong.empty() || save.warnings == 1) return wrong;
                          return fmt::format("warned {} times", save.warnings);
                        }};
  expect_no_problem("a slow part", scenario, {.preemptions = 20, .executions = 10, .seed = 6});
  scenario.part = [&](Communicator& p) { save_for(std::chrono::seconds(3600), save, p); };
  scenario.check = [](const Execution& execution) -> std::string {
    for (size_t r = 1; r < execution.ranks.size(); ++r) {
      const Outcome& outcome = execution.ranks[r];
      if (!outcome.error) return "a rank waits for ever";
      if (outcome.end > kStart + std::chrono::seconds(600) + kNotice) return "it waits too long";
      if (!blames(*outcome.error, 0)) return outcome.error->why();
    }
    return "";
  };
  expect_no_problem(
      "a part without an end", scenario, {.preemptions = 20, .executions = 3, .seed = 7});
}

}  // namespace
}  // namespace lockstep::explore
