#include "inspect/trace/step_bounds.h"

#include <fstream>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/temp_dir.h"
#include "trainers/timeline/read_trace.h"

namespace lockstep::trainers::step_bounds_test {
namespace {

using ::testing::HasSubstr;

// The milliseconds of a rank's step by type of work.
struct Work {
  double compute = 10;
  double loader = 0;
  double exchange = 0.5;  // only the transfer
};

// Traces of ranks that do this work and wait for the slowest rank; an update of 1 ms ends each
// step.
class TracedRanks {
 public:
  void step(const std::vector<Work>& work) {
    double last = 0;
    for (const Work& rank : work) last = std::max(last, rank.compute + rank.loader);
    TracedStep step{.number = static_cast<int64_t>(trace_.steps.size()) + 20, .ranks = {}};
    for (const Work& rank : work) {
      const double waited = last - rank.compute - rank.loader + rank.exchange;
      const double summed = now_ + last + rank.exchange;
      step.ranks.push_back({.begin = us(now_),
                            .end = us(summed + 1),
                            .summed = us(summed),
                            .loader = us(rank.loader),
                            .exchange = us(waited)});
    }
    now_ += last + work.front().exchange + 1;
    trace_.steps.push_back(step);
  }
  void steps(int count, const std::vector<Work>& work) {
    for (int i = 0; i < count; ++i) step(work);
  }

  TraceContents& trace() { return trace_; }
  TraceVerdict verdict() const { return verdict_on(step_parts(trace_.steps)); }

 private:
  static double us(double ms) { return 1000 * ms; }

  double now_ = 3;
  TraceContents trace_{.device = "cpu", .clock_error_us = 5, .steps = {}};
};

TEST(StepBounds, NamesASlowRank) {
  TracedRanks run;
  run.steps(10, {{}, {}, {.compute = 18}, {}});
  EXPECT_EQ(run.verdict().bound, StepBound::kSkew);
  EXPECT_EQ(run.verdict().rank, 2);
  const StepParts parts = step_parts(run.trace().steps).back();
  EXPECT_NEAR(parts.parts_us[static_cast<size_t>(StepBound::kSkew)], 8000, 1e-6);
  EXPECT_NEAR(parts.parts_us[static_cast<size_t>(StepBound::kCompute)], 11000, 1e-6)
      << "with the update";
  EXPECT_NEAR(parts.total_us(), 19500, 1e-6);
}

TEST(StepBounds, NamesALoaderThatHandsOutBatchesInBursts) {
  TracedRanks run;
  for (int i = 0; i < 8; ++i) {
    run.step({{.loader = 20}, {.loader = 18}});
    run.step({{}, {}});
  }
  EXPECT_EQ(run.verdict().bound, StepBound::kLoader);
}

TEST(StepBounds, NamesTheNetwork) {
  TracedRanks run;
  run.steps(8, {{.exchange = 6}, {.compute = 11, .exchange = 6}});
  EXPECT_EQ(run.verdict().bound, StepBound::kExchange);
  EXPECT_EQ(run.verdict().rank, -1);
}

TEST(StepBounds, AbstainsWhereTheEvidenceIsThin) {
  TracedRanks few;
  few.steps(4, {{}, {.compute = 50}});
  EXPECT_THAT(few.verdict().abstains, HasSubstr("4 steps are too few"));

  TracedRanks even;
  even.steps(10, {{}, {.compute = 10.5}});
  EXPECT_EQ(even.verdict().bound, StepBound::kCompute);

  TracedRanks in_turns;  // no single rank is the slow one
  for (int i = 0; i < 10; ++i) {
    in_turns.step({{.compute = i % 2 == 0 ? 20.0 : 10.0}, {.compute = i % 2 == 0 ? 10.0 : 20.0}});
  }
  EXPECT_EQ(in_turns.verdict().bound, StepBound::kCompute);

  std::mt19937 random(7);
  TracedRanks bursts;  // another program sometimes uses the processor
  for (int i = 0; i < 40; ++i) {
    const double burst = random() % 3 == 0 ? 30 : 0;
    bursts.step({{.exchange = 0.5 + burst}, {.exchange = 0.5 + burst}});
  }
  EXPECT_EQ(bursts.verdict().bound, StepBound::kCompute);
}

TEST(StepBounds, ALoneRankHasNoSkew) {
  TracedRanks run;
  run.steps(6, {{}});
  EXPECT_EQ(run.verdict().bound, StepBound::kCompute);
  EXPECT_EQ(step_parts(run.trace().steps)[3].share(StepBound::kSkew), 0);
}

TEST(DescribeTrace, TakesTenLinesAndNoVerdictOnADevice) {
  TracedRanks run;
  run.steps(30, {{}, {.compute = 30}});
  const std::string text = describe_trace(run.trace());
  EXPECT_LE(std::ranges::count(text, '\n'), 10);
  EXPECT_THAT(text, HasSubstr("steps 20 to 49 on 2 ranks, whose clocks agree within 0.005 ms\n"));
  EXPECT_THAT(text, HasSubstr("rank 1 came last in 30 of 30 steps\n"));
  EXPECT_THAT(text, HasSubstr("largest in steps 20-49 skew\n"));
  EXPECT_THAT(text, HasSubstr("verdict rank 1 is slow: "));
  run.trace().device = "cuda";
  EXPECT_THAT(describe_trace(run.trace()), HasSubstr("verdict none: the lanes are the host's"));
  EXPECT_THAT(describe_trace({}), HasSubstr("verdict none: "));
}

// Time and memory must grow linearly with the number of steps.
TEST(ReadTrace, OfAHundredThousandSteps) {
  constexpr int kSteps = 100'000;
  const testing::TempDir dir;
  std::string text = R"({"otherData":{"lockstep":"1","format":1,"ranks":1},"traceEvents":[)";
  for (int i = 0; i < kSteps; ++i) {
    const int begin = 1000 * i;
    text += fmt::format(R"({{"ph":"X","tid":100000,"ts":{},"dur":900,"name":"step {}"}},)"
                        R"({{"ph":"X","tid":100000,"ts":{},"dur":99,"name":"wait for sums"}},)",
                        begin,
                        i + 1,
                        begin + 700);
  }
  text.pop_back();
  std::ofstream(dir / "trace.json") << text << "]}";
  const TraceContents trace = read_trace(dir.path());
  EXPECT_EQ(trace.steps.size(), size_t{kSteps});
  EXPECT_EQ(trace.typical.ranks.at(0).size(), 2U);
  const std::string said = describe_trace(trace);
  EXPECT_LE(std::ranges::count(said, '\n'), 10);
  EXPECT_THAT(said, HasSubstr("steps 1 to 100000 on 1 rank,"));
}

// Neither step has a span of sums, and the second one ends before it begins.
TEST(ReadTrace, OfStepsThatWaitForNoSums) {
  const testing::TempDir dir;
  testing::write_text(dir / "trace.json",
                      R"({"otherData":{"lockstep":"1","format":1,"ranks":1},"traceEvents":[)"
                      R"({"ph":"X","pid":1,"tid":100000,"ts":10,"dur":9,"name":"step 1"},)"
                      R"({"ph":"X","pid":1,"tid":100000,"ts":11,"dur":2,"name":"exchange"},)"
                      R"({"ph":"X","pid":1,"tid":100000,"ts":20,"dur":-15,"name":"step 2"},)"
                      R"({"ph":"X","pid":1,"tid":100000,"ts":21,"dur":2,"name":"exchange"}]})");
  const TraceContents trace = read_trace(dir.path());
  ASSERT_EQ(trace.steps.size(), 2U);
  for (const TracedStep& step : trace.steps) EXPECT_EQ(step.ranks.at(0).exchange, 0);
}

TEST(ReadTrace, RefusesWhatIsNoTrace) {
  const testing::TempDir dir;
  EXPECT_THROW(read_trace(dir / "absent.json"), EnvironmentError);
  for (const char* text : {"",
                           "{",
                           "[]",
                           "{}",
                           R"({"traceEvents":[],"otherData":{"lockstep":"1"}})",
                           R"({"traceEvents":[7,{"ph":3}],"otherData":{"lockstep":"1"}})",
                           R"({"otherData":{"lockstep":"1","format":2,"ranks":0}})",
                           R"({"otherData":{"lockstep":"1","format":1,"ranks":2}})"}) {
    std::ofstream(dir / "trace.json") << text;
    EXPECT_THROW(read_trace(dir / "trace.json"), DataError) << text;
    EXPECT_THROW(read_trace(dir.path()), DataError) << "the folder of " << text;
  }
}

}  // namespace
}  // namespace lockstep::trainers::step_bounds_test
