// Timelines of real runs, and the verdicts of lockstep trace.
#include <algorithm>
#include <map>

#include <gmock/gmock.h>

#include "tests/e2e/photo_runs.h"

namespace lockstep::testing::trace_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr int kRanks = 4;
constexpr int64_t kThreadsOfRank = 100'000;

struct Span {
  std::string name;
  double begin = 0;  // in microseconds
  double end = 0;
  json args;
};

bool is_in(const Span& inner, const Span& outer) {
  return inner.begin >= outer.begin && inner.end <= outer.end;
}

// The spans of a trace by thread, ordered by their begin. If two begin together, the longer one is
// first.
struct Trace {
  explicit Trace(const std::filesystem::path& file) : all(read_json(file)) {
    for (const json& event : all.at("traceEvents")) {
      if (event.at("ph") != "X") continue;
      const double begin = event.at("ts");
      const int64_t thread = event.at("tid");
      EXPECT_EQ(thread / kThreadsOfRank, event.at("pid").get<int64_t>());
      const json args = event.contains("args") ? event.at("args") : json::object();
      threads[thread].push_back(
          {event.at("name"), begin, begin + event.at("dur").get<double>(), args});
    }
    for (auto& [thread, spans] : threads) {
      std::ranges::stable_sort(
          spans, std::less(), [](const Span& span) { return std::pair(span.begin, -span.end); });
    }
  }

  const std::vector<Span>& steps_lane(int rank) const {
    return threads.at((rank + 1) * kThreadsOfRank);
  }
  std::vector<Span> of_rank(int rank, const std::string& begin_of_name) const {
    std::vector<Span> found;
    for (const auto& [thread, spans] : threads) {
      if (thread / kThreadsOfRank != rank + 1) continue;
      for (const Span& span : spans) {
        if (span.name.starts_with(begin_of_name)) found.push_back(span);
      }
    }
    return found;
  }
  // Spans of a thread are nested or disjoint, up to the precision of the printed digits.
  void expect_nested() const {
    constexpr double kDigit = 0.002;
    for (const auto& [thread, spans] : threads) {
      std::vector<Span> open;
      for (const Span& span : spans) {
        while (!open.empty() && open.back().end <= span.begin + kDigit) open.pop_back();
        if (!open.empty()) {
          EXPECT_LE(span.end, open.back().end + kDigit)
              << span.name << " in " << open.back().name << " of thread " << thread;
        }
        open.push_back(span);
      }
    }
  }

  json all;
  std::map<int64_t, std::vector<Span>> threads;
};

const Span& only(const std::vector<Span>& spans, const Span& outer, const std::string& name) {
  const auto is_it = [&](const Span& span) { return span.name == name && is_in(span, outer); };
  EXPECT_EQ(std::ranges::count_if(spans, is_it), 1) << name << " in " << outer.name;
  return *std::ranges::find_if(spans, is_it);
}

// "layer1.0.bias" -> "layer1.0"
std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

// A bucket begins after the layer of its last gradient and ends before the optimizer begins.
void expect_buckets_between(const Trace& trace, int rank, const Span& step) {
  const std::vector<Span>& lane = trace.steps_lane(rank);
  const Span& backward = only(lane, step, "backward");
  const Span& optimizer = only(lane, step, "optimizer");
  int buckets = 0;
  for (const Span& bucket : trace.of_rank(rank, "bucket ")) {
    if (!is_in(bucket, step)) continue;
    ++buckets;
    const std::string layer = layer_of(bucket.args.at("last_gradient"));
    EXPECT_GE(bucket.begin, only(lane, backward, layer).end) << step.name << " of rank " << rank;
    EXPECT_LE(bucket.end, optimizer.begin) << step.name << " of rank " << rank;
  }
  EXPECT_EQ(buckets, 3);
}

class TracedRun : public ::testing::Test {
 protected:
  ProgramResult train(int ranks, const std::string& name, const Arguments& more) const {
    Arguments flags = {"--max-steps", "12", "-b", "16", "--threads", "1"};
    flags.insert(flags.end(), more.begin(), more.end());
    return run_ranks(ranks, convnet(dir_ / name, flags));
  }

  const TempDir dir_;
};

TEST_F(TracedRun, ShowsAllRanksOnOneClockAndChangesNoBit) {
  const Arguments buckets = {"--bucket-cap-mb", "0.02", "--first-bucket-mb", "0.02"};
  Arguments traced = {"--trace", "3:6", "--save-steps", "5"};
  traced.insert(traced.end(), buckets.begin(), buckets.end());
  const ProgramResult result = train(kRanks, "traced", traced);
  ASSERT_EQ(result.exit_code, 0) << said(result);
  ASSERT_EQ(train(kRanks, "plain", buckets).exit_code, 0);
  const ProgramResult difference =
      run_program({"lockstep", "diff", weights(dir_ / "traced"), weights(dir_ / "plain")});
  EXPECT_EQ(difference.exit_code, 0) << said(difference);

  const Trace trace(dir_ / "traced" / "trace.json");
  trace.expect_nested();
  const json& about = trace.all.at("otherData");
  EXPECT_EQ(about.at("first_step"), 3);
  EXPECT_EQ(about.at("last_step"), 6);
  const double error = about.at("clock_error_us");
  for (const json& clock : about.at("clocks")) {  // all ranks are on one host with one clock
    EXPECT_LE(std::abs(clock.at("offset_before_us").get<double>()), error + 0.001);
    EXPECT_LE(std::abs(clock.at("offset_after_us").get<double>()), error + 0.001);
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::vector<Span> steps = trace.of_rank(rank, "step ");
    ASSERT_EQ(steps.size(), 4U);
    EXPECT_EQ(steps.front().name, "step 3");
    for (const Span& step : steps) expect_buckets_between(trace, rank, step);
    EXPECT_FALSE(trace.of_rank(rank, "batch ").empty());
    EXPECT_EQ(trace.of_rank(rank, "wait for images").size(), 4U);
    EXPECT_EQ(trace.of_rank(rank, "checkpoint").size(), rank == 0 ? 1U : 0U);
  }
  // No rank's sum is complete before the last rank has all its gradients.
  for (const char* bucket : {"bucket 0", "bucket 1", "bucket 2"}) {
    for (size_t step = 0; step < 4; ++step) {
      double last_ready = 0;
      double first_sum = 1e300;
      for (int rank = 0; rank < kRanks; ++rank) {
        const Span span = trace.of_rank(rank, bucket).at(step);
        last_ready = std::max(last_ready, span.begin);
        first_sum = std::min(first_sum, span.end);
      }
      EXPECT_LE(last_ready, first_sum + 2 * error);
    }
  }
}

TEST_F(TracedRun, ArrowsJoinPassesBucketsAndUpdates) {
  ASSERT_EQ(train(1, "run", {"--trace", "2:3"}).exit_code, 0);
  const Trace trace(dir_ / "run" / "trace.json");
  std::map<int64_t, json> begun;
  int arrows = 0;
  for (const json& event : trace.all.at("traceEvents")) {
    if (event.at("ph") == "s") begun[event.at("id")] = event;
    if (event.at("ph") != "f") continue;
    ++arrows;
    const json& from = begun.at(event.at("id"));
    EXPECT_EQ(from.at("name"), event.at("name"));
    EXPECT_LE(from.at("ts"), event.at("ts"));
    EXPECT_NE(from.at("tid"), event.at("tid"));
  }
  EXPECT_EQ(arrows, 2 * 2) << "two for the bucket of each step";
}

TEST_F(TracedRun, WhatCannotBeWrittenCostsTheTraceAlone) {
  const ProgramResult late = train(1, "late", {"--trace", "13:20"});
  EXPECT_EQ(late.exit_code, 0);
  EXPECT_THAT(late.err, HasSubstr("the run took none of the steps 13 to 20 of --trace"));

  std::filesystem::create_directories(dir_ / "blocked" / "trace.json");
  const ProgramResult blocked = train(2, "blocked", {"--trace", "2:3"});
  EXPECT_EQ(blocked.exit_code, 0) << said(blocked);
  EXPECT_THAT(blocked.err, HasSubstr("no trace: cannot write "));

  const ProgramResult short_run = train(2, "short", {"--trace", "10:100"});
  EXPECT_EQ(short_run.exit_code, 0) << said(short_run);
  EXPECT_EQ(read_json(dir_ / "short" / "trace.json").at("otherData").at("last_step"), 12);
}

// tests/long/trace_verdicts.sh makes twenty runs of each, and runs without a fault on an idle
// machine.
TEST_F(TracedRun, ThePlantedCauseIsNamed) {
  const auto verdict = [&](const std::string& name, const std::string& fault) {
    Arguments line = convnet(dir_ / name, {"--trace", "4:18", "-b", "32", "--threads", "1"});
    const ProgramResult run = run_ranks(2, line, {.environment = {{"LOCKSTEP_FAULT", fault}}});
    EXPECT_EQ(run.exit_code, 0) << said(run);
    const ProgramResult told = run_program({"lockstep", "trace", (dir_ / name).string()});
    EXPECT_EQ(told.exit_code, 0) << said(told);
    EXPECT_LE(count_of(told.out, "\n"), 10);
    return told.out;
  };
  EXPECT_THAT(verdict("rank", "slow:rank=1,ms=20"), HasSubstr("verdict rank 1 is slow"));
  EXPECT_THAT(verdict("network", "slownet:ms=20"), HasSubstr("verdict the exchange"));
}

TEST_F(TracedRun, ASlowLoaderIsNamed) {
  write_image_folders(dir_ / "photos", 16);
  const Arguments flags = {"--max-steps", "10", "--no-eval", "--threads", "1", "-j", "1"};
  Arguments line = resnet20(dir_ / "photos", dir_ / "run", flags);
  line.insert(line.end(), {"--trace", "3:10"});
  const ProgramResult run =
      run_program(line, {.environment = {{"LOCKSTEP_FAULT", "slowdecode:ms=60"}}});
  ASSERT_EQ(run.exit_code, 0) << said(run);
  const ProgramResult told = run_program({"lockstep", "trace", (dir_ / "run").string()});
  EXPECT_THAT(told.out, HasSubstr("verdict the loader"));
  const Trace trace(dir_ / "run" / "trace.json");
  for (const char* part : {"read", "decode", "augment"}) {
    EXPECT_FALSE(trace.of_rank(0, part).empty()) << part;
  }
  trace.expect_nested();
}

}  // namespace
}  // namespace lockstep::testing::trace_test
