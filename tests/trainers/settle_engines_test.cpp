#include "trainers/planner/settle_engines.h"

#include <mutex>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "comm/shared/thread_ranks.h"
#include "core/atomic_file.h"
#include "tests/support/temp_dir.h"
#include "trainers/report/run_record.h"

namespace lockstep::trainers::settle_engines_test {
namespace {

using kernels::ConvolutionProblem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_text;

constexpr int64_t kUnfused = 64;  // channels whose fused form is not faster
const PlanOrigin kHere{.cudnn = "9.19.0", .card = "NVIDIA H200 (sm_90)"};

std::vector<ConvolutionProblem> problems_of(std::initializer_list<int64_t> channels) {
  std::vector<ConvolutionProblem> problems;
  for (const int64_t wanted : channels) {
    problems.push_back({.in = {2, wanted, 8, 8}, .weight = {8, wanted, 1, 1}, .params = {}});
  }
  return problems;
}

std::vector<std::string> engines_of(const PlannedEngines& engines) {
  std::vector<std::string> names;
  for (const auto& [problem, found] : engines) names.push_back(found.engine);
  return names;
}

class SettleEngines : public ::testing::Test {
 protected:
  // Returns rank 0's result. The other ranks must have the same engines.
  SettledEngines settle(int ranks, const std::vector<ConvolutionProblem>& problems, bool tunes) {
    std::mutex mutex;
    std::vector<SettledEngines> settled(static_cast<size_t>(ranks));
    comm::spawn_ranks(ranks, [&](Communicator& peers) {
      const TuneEngine tune = [&](const ConvolutionProblem& problem, const PlannedEngines& known) {
        EXPECT_EQ(peers.rank(), 0);
        const std::lock_guard lock(mutex);
        known_.push_back(known.size());
        if (problem.in[1] == kUnfused) return PlannedEngine{.engine = PlannedEngine::kNone};
        return PlannedEngine{.engine = fmt::format("engine {} try {}", problem.in[1], ++tuned_)};
      };
      settled[static_cast<size_t>(peers.rank())] =
          settle_engines(peers, file(), kHere, problems, tunes ? tune : TuneEngine());
    });
    for (const SettledEngines& rank : settled) {
      EXPECT_EQ(engines_of(rank.engines), engines_of(settled[0].engines));
      EXPECT_EQ(digest_of(rank.engines), digest_of(settled[0].engines));
      EXPECT_EQ(rank.convolutions, std::ssize(problems));
    }
    return settled[0];
  }
  std::filesystem::path file() const { return dir_ / "plans.json"; }
  void keep(const PlanFile& plans) { write_file_atomically(file(), to_json(plans)); }

  const TempDir dir_;
  int tuned_ = 0;
  std::vector<size_t> known_;  // number of known engines at each call
};

TEST_F(SettleEngines, WhatTheFileLacksIsTimedOnceOnRankZero) {
  const SettledEngines first = settle(3, problems_of({4, 8}), true);
  EXPECT_THAT(engines_of(first.engines), ElementsAre("engine 4 try 1", "engine 8 try 2"));
  EXPECT_EQ(first.timed, 2);
  EXPECT_FALSE(std::filesystem::exists(file()));  // the caller writes it
  keep(first.plans);
  const SettledEngines second = settle(2, problems_of({8, 16}), true);
  EXPECT_THAT(engines_of(second.engines), ElementsAre("engine 16 try 3", "engine 8 try 2"));
  EXPECT_EQ(second.timed, 1);
  EXPECT_EQ(second.plans.engines.size(), 3U);  // engines of other runs stay in the file
  EXPECT_EQ(second.line("p"), "cuDNN's engines: 2 of 2 convolutions by p, 1 of them timed now");
  keep(second.plans);
  EXPECT_EQ(digest_of(settle(1, problems_of({8, 16}), true).engines), digest_of(second.engines));
  EXPECT_EQ(tuned_, 3);
}

TEST_F(SettleEngines, WithoutTimingTheRestGoesByTheRule) {
  keep(settle(1, problems_of({4}), true).plans);
  const SettledEngines settled = settle(2, problems_of({4, 8, 16}), false);
  EXPECT_THAT(engines_of(settled.engines), ElementsAre("engine 4 try 1"));
  EXPECT_EQ(settled.line("p"), "cuDNN's engines: 1 of 3 convolutions by p, 2 by rule");
}

TEST_F(SettleEngines, FusedFormsAreTimedBehindWhatTheyReplace) {
  std::vector<ConvolutionProblem> problems = problems_of({4, 8, 4, 8, kUnfused});
  for (size_t i = 2; i < problems.size(); ++i) problems[i].gives_sums = true;
  const SettledEngines settled = settle(2, problems, true);
  EXPECT_THAT(known_, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(settled.fused, 2);
  EXPECT_EQ(settled.line("p"),
            "cuDNN's engines: 5 of 5 convolutions by p, 5 of them timed now, 2 fused with batch "
            "norms");
  keep(settled.plans);
  const SettledEngines again = settle(1, problems, true);
  EXPECT_EQ(again.timed, 0);  // not even the form that is not faster
  EXPECT_EQ(again.fused, 2);
}

TEST_F(SettleEngines, AFormThatDoesNotPayAtEachSizeIsNotTaken) {
  std::vector<ConvolutionProblem> forms = problems_of({8, 8, 16, 8});
  for (size_t i = 0; i < 3; ++i) forms[i].gives_sums = true;
  forms[1].in = {3, 8, 8, 8};  // the same layer as the first, with another shard's images
  const PlannedEngine one{.engine = "engine 1"}, none{.engine = PlannedEngine::kNone};
  PlannedEngines engines;
  for (const ConvolutionProblem& form : forms) engines[form.text()] = one;
  EXPECT_EQ(fused_layers(forms, engines).size(), 3U);
  engines[forms[1].text()] = none;
  ASSERT_EQ(fused_layers(forms, engines).size(), 1U);
  EXPECT_EQ(fused_layers(forms, engines)[0].in[1], 16);
  engines.erase(forms[2].text());
  EXPECT_TRUE(fused_layers(forms, engines).empty());
}

TEST_F(SettleEngines, AStaleFileIsTimedAnew) {
  PlanFile old = settle(1, problems_of({4}), true).plans;
  old.origin.cudnn = "9.11.0";
  keep(old);
  const SettledEngines settled = settle(2, problems_of({4}), true);
  EXPECT_THAT(engines_of(settled.engines), ElementsAre("engine 4 try 2"));
  EXPECT_EQ(settled.plans.origin, kHere);
  EXPECT_THAT(settled.note, HasSubstr("was of cuDNN 9.11.0 on NVIDIA H200 (sm_90)"));
}

TEST_F(SettleEngines, OfOtherEnginesNoRankStarts) {
  const auto start = [](Communicator& peers) {
    const RunPlan plan{.algorithm = "tree",
                       .transport = "shm",
                       .wire = "f32",
                       .buckets = {},
                       .plan_choices = peers.rank() == 0 ? "5b7e" : "1234",
                       .same_bits = {}};
    comm::handshake(peers, handshake_fields(plan));
  };
  try {
    comm::spawn_ranks(2, start);
    FAIL() << "they started";
  } catch (const EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "ranks differ in cuDNN's engines");
  }
}

// An error ends the process, as it does on each rank of a job.
TEST_F(SettleEngines, WithoutTimingAFileOfNoUseEndsTheRun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [&] { settle(1, problems_of({4}), false); };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(5), "cannot use .*plans.json as a plan file");
  keep({.origin = {.cudnn = "9.11.0", .card = kHere.card}, .engines = {}});
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(5), "plans.json is stale\n  why: .*\n  try: ");
}

// A file that is no plan file must not be overwritten.
TEST_F(SettleEngines, AForeignFileIsRefusedWithTimingToo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  write_text(file(), "dear diary");
  EXPECT_EXIT(
      settle(1, problems_of({4}), true), ::testing::ExitedWithCode(5), "damaged or no plan file");
}

}  // namespace
}  // namespace lockstep::trainers::settle_engines_test
