// Tests which cause a report names for a run's speed, and when it names none.
#include "trainers/page/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/made_run.h"

namespace lockstep::trainers::verdict_test {
namespace {

using ::testing::HasSubstr;
using testing::made_exchange;
using testing::made_record;
using testing::MadeLine;
using testing::train_line;

// A run of 300 steps in which all lines are like this one and the ranks spent their steps as given.
ViewedRun run_like(const MadeLine& line, const std::vector<std::pair<double, double>>& ranks) {
  ViewedRun run{.record = made_record(static_cast<int>(ranks.size()))};
  run.record.communication = made_exchange(ranks);
  for (MadeLine now = line; now.step <= 300; now.step += 10) {
    run.curves.add_line(train_line(now));
  }
  return run;
}

std::string speed_sentence(const ViewedRun& run) {
  return verdict(run).at(1);
}

TEST(Verdict, NamesCompute) {
  const ViewedRun run = run_like({}, {{0.01, 0.001}, {0.0102, 0.0008}});
  EXPECT_EQ(speed_verdict(run).bound, RunBound::kCompute);
  EXPECT_THAT(speed_sentence(run), HasSubstr("so the computation bound it"));
  EXPECT_EQ(speed_verdict(run_like({}, {{0.01, 0}})).bound, RunBound::kCompute) << "one rank";
}

TEST(Verdict, NamesExposedCommunication) {
  const ViewedRun run = run_like({}, {{0.005, 0.006}, {0.0051, 0.005}});
  const SpeedVerdict speed = speed_verdict(run);
  EXPECT_EQ(speed.bound, RunBound::kCommunication);
  EXPECT_NEAR(speed.share, 0.495, 0.001) << "of the rank that waited the least";
  EXPECT_THAT(speed_sentence(run), HasSubstr("50 % of a step was exposed communication"));
}

TEST(Verdict, NamesTheLoaderAndItsWork) {
  const ViewedRun run = run_like({.loader_waited = 0.3}, {{0.01, 0.02}, {0.02, 0.01}});
  const SpeedVerdict speed = speed_verdict(run);
  EXPECT_EQ(speed.bound, RunBound::kLoader) << "whatever ranks wait for besides";
  EXPECT_EQ(speed.busy, "decode");
  EXPECT_THAT(speed_sentence(run), HasSubstr("waited 30 % of their time for images"));
}

TEST(Verdict, NamesASlowRank) {
  const ViewedRun run =
      run_like({.slowest_rank = 2, .skew = 0.5}, {{0.01, 0.006}, {0.01, 0.006}, {0.015, 0.001}});
  const SpeedVerdict speed = speed_verdict(run);
  EXPECT_EQ(speed.bound, RunBound::kSlowRank);
  EXPECT_EQ(speed.rank, 2);
  EXPECT_NEAR(speed.share, 0.5, 1e-9);
  EXPECT_THAT(speed_sentence(run), HasSubstr("rank 2 was 50 % slower than the others"));
}

TEST(Verdict, AbstainsWhereLittleIsKnown) {
  ViewedRun few = run_like({.step = 270}, {{0.005, 0.006}, {0.005, 0.006}});
  EXPECT_EQ(speed_verdict(few).bound, RunBound::kUnknown) << "four lines";
  EXPECT_THAT(speed_sentence(few), HasSubstr("the figures do not say what bound it"));

  ViewedRun brief{.record = made_record(2)};
  brief.record.communication = made_exchange({{0.005, 0.006}, {0.005, 0.006}});
  for (int64_t step = 1; step < 50; ++step) brief.curves.add_line(train_line({.step = step}));
  EXPECT_EQ(speed_verdict(brief).bound, RunBound::kUnknown) << "49 steps";

  ViewedRun running = run_like({}, {{0.005, 0.006}, {0.005, 0.006}});
  running.record.communication.reset();
  EXPECT_EQ(speed_verdict(running).bound, RunBound::kUnknown) << "no summary yet";
}

TEST(Verdict, AbstainsWhereNoCauseStandsOut) {
  // One rank is a fifth slower overall, but not in most lines, so no rank is named.
  EXPECT_EQ(speed_verdict(run_like({.skew = 0.02}, {{0.01, 0.003}, {0.012, 0.001}})).bound,
            RunBound::kUnknown);
  EXPECT_EQ(speed_verdict(run_like({.skew = 0.02}, {{0.01, 0.006}, {0.015, 0.001}})).bound,
            RunBound::kUnknown);
}

TEST(Verdict, WaitingOnSharedCoresSaysNothing) {
  ViewedRun run = run_like({}, {{0.005, 0.006}, {0.005, 0.006}});
  for (RankRecord& rank : run.record.ranks) {
    rank.cores = 2;
    rank.threads = 2;
  }
  const SpeedVerdict speed = speed_verdict(run);
  EXPECT_EQ(speed.bound, RunBound::kSharedCores);
  EXPECT_EQ(speed.cores, 2);
  run.record.ranks[1].host = "b";
  EXPECT_EQ(speed_verdict(run).bound, RunBound::kCommunication) << "a host each";
}

TEST(Verdict, ThreeSentencesSayHowItEnded) {
  ViewedRun run = run_like({}, {{0.01, 0.001}, {0.01, 0.001}});
  run.state = RunState::kRunning;
  EXPECT_EQ(verdict(run).size(), 3U);
  EXPECT_EQ(verdict(run)[0], "convnet is training and has logged 300 steps so far.");
  EXPECT_THAT(verdict(run)[2], HasSubstr("the run has the same bits on 1, 2, 4, 8 ranks"));
  run.state = RunState::kFailed;
  run.record.exit_code = ExitCode::kDiverged;
  EXPECT_THAT(verdict(run)[0], HasSubstr("exit code 6: the loss or the ranks diverged"));
  run.state = RunState::kDone;
  run.record.exit_code = ExitCode::kDone;
  run.record.final_metrics =
      FinalMetrics{.evaluation = Evaluation{.correct1 = 985, .total = 1000}, .wall_s = 61};
  EXPECT_EQ(verdict(run)[0],
            "convnet reached 98.50 % (985 of 1,000 test images) after 300 steps in 1 min 1 s.");
}

TEST(ViewedRun, AnEvaluationTrainsNothing) {
  ViewedRun run = run_like({}, {{0.01, 0.001}});
  run.record.final_metrics = FinalMetrics{.images_per_s = 2524};
  EXPECT_EQ(images_per_s_of(run), 2524);
  run.record.flags.push_back({"evaluate", "true", "command line"});
  EXPECT_EQ(images_per_s_of(run), 0);
  EXPECT_EQ(verdict(run)[1], "It took no step on one rank.");
}

// A run that was resumed twice: its record is that of the last process.
TEST(ViewedRun, SecondsAreThoseOfAllProcesses) {
  ViewedRun run;
  const auto add = [&](int64_t step, double t) {
    run.curves.add_line(fmt::format(R"({{"split":"train","step":{},"t":{}}})", step, t));
  };
  add(10, 40);
  add(20, 80);
  add(30, 10);
  EXPECT_EQ(seconds_of(run), 90);
  run.record.resumed = ResumedFrom{.file = "", .step = 20};
  run.record.final_metrics = FinalMetrics{.wall_s = 12};
  EXPECT_EQ(seconds_of(run), 92);
  run.record.resumed->step = 30;  // took no step
  EXPECT_EQ(seconds_of(run), 102);
}

}  // namespace
}  // namespace lockstep::trainers::verdict_test
