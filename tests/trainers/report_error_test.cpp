#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "comm/single.h"
#include "core/error.h"
#include "trainers/report/errors.h"

namespace lockstep::trainers::report_error_test {
namespace {

struct Launcher {
  const char* rank;
  const char* size;
};
constexpr Launcher kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
                                   {"RANK", "WORLD_SIZE"}};

class ReportError : public ::testing::Test {
 protected:
  void TearDown() override { clear(); }
  void SetUp() override { clear(); }

  static void clear() {
    for (const auto& [rank, size] : kLaunchers) {
      unsetenv(rank);
      unsetenv(size);
    }
  }

  static std::string printed(const std::exception& error, ErrorScope scope, int want_code) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(report_error(error, scope), want_code);
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(ReportError, ThreeLinesAndTheExitCode) {
  const UsageError error("what", "why", "hint");
  EXPECT_EQ(printed(error, ErrorScope::kEveryRank, 2),
            "lockstep: error: what\n  why: why\n  try: hint\n");
  EXPECT_EQ(printed(DataError("x"), ErrorScope::kEveryRank, 3), "lockstep: error: x\n");
}

TEST_F(ReportError, RankZeroSpeaksForAll) {
  const UsageError error("what", "why", "hint");
  for (const auto& [rank, size] : kLaunchers) {
    setenv(size, "4", 1);
    setenv(rank, "3", 1);
    EXPECT_EQ(printed(error, ErrorScope::kEveryRank, 2), "") << rank;
    setenv(rank, "0", 1);
    EXPECT_NE(printed(error, ErrorScope::kEveryRank, 2), "") << rank;
    clear();
  }
}

TEST_F(ReportError, SpeaksWhenTheLauncherMakesNoSense) {
  setenv("PMI_RANK", "7", 1);
  setenv("PMI_SIZE", "many", 1);
  EXPECT_NE(printed(UsageError("what"), ErrorScope::kEveryRank, 2), "");
}

TEST_F(ReportError, OneRanksErrorNamesTheRank) {
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  EXPECT_EQ(printed(DataError("no file"), ErrorScope::kThisRank, 3),
            "lockstep: error: rank 3: no file\n");
  EXPECT_EQ(printed(CommError("rank 3 lost a peer"), ErrorScope::kThisRank, 75),
            "lockstep: error: rank 3 lost a peer\n");
}

// Rank 1 of two ranks.
class RankOne : public comm::SingleCommunicator {
 public:
  explicit RankOne(bool peer_ends) : peer_ends_(peer_ends) {}
  int rank() const override { return 1; }
  int size() const override { return 2; }
  std::vector<int> gone() override {
    ++looks_;
    return peer_ends_ && looks_ > 3 ? std::vector<int>{0} : std::vector<int>{};
  }

 private:
  const bool peer_ends_;
  int looks_ = 0;
};

TEST_F(ReportError, RanksThatFailAlikeLeaveAfterRankZeroAndALoneOneSpeaks) {
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  const auto code3 = ::testing::ExitedWithCode(3);
  RankOne alike(true);
  EXPECT_EXIT(fail_rank(alike, DataError("broken")), code3, ::testing::Eq(""));
  RankOne alone(false);
  const auto named = ::testing::Eq("lockstep: error: rank 1: broken\n");
  EXPECT_EXIT(fail_rank(alone, DataError("broken")), code3, named);
}

TEST_F(ReportError, AWantedSummaryIsRankZerosAndPrintedOnce) {
  const auto summary = [&](const Error& error) {
    ::testing::internal::CaptureStdout();
    printed(error, ErrorScope::kThisRank, static_cast<int>(error.code()));
    return ::testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(summary(DataError("x")), "") << "nobody wants it";
  enable_error_summary(true);
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "2", 1);
  EXPECT_EQ(summary(DataError("x")), "");
  clear();
  const std::string text = summary(DataError("no \"file\"", "why", "try"));
  EXPECT_EQ(text,
            R"({"schema_version":1,"run_dir":null,"exit_code":3,"error":)"
            R"({"what":"no \"file\"","why":"why","try":"try","rank":0}})"
            "\n");
  EXPECT_EQ(summary(DataError("x")), "");
}

TEST_F(ReportError, ForeignExceptionsAreBugs) {
  const std::string text = printed(std::runtime_error("odd"), ErrorScope::kEveryRank, 1);
  EXPECT_NE(text.find("odd"), std::string::npos);
  EXPECT_NE(text.find("bug"), std::string::npos);
}

TEST(OnAllRanks, ARankThatOpensItsDataSlowlyIsWaitedForAndNamed) {
  constexpr std::chrono::milliseconds kDeadline(100);
  ::testing::internal::CaptureStderr();
  comm::spawn_ranks(
      3,
      [&](Communicator& ranks) {
        const auto open = [&] {
          if (ranks.rank() == 1) std::this_thread::sleep_for(4 * kDeadline);
        };
        run_or_end_all_ranks(ranks, open, "opening the data");
      },
      kDeadline);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "note: rank 1 is still opening the data; the other ranks wait for 600 s at most\n");
}

// nlohmann::json's destructor, which is noexcept, throws like this if memory runs out.
TEST_F(ReportError, AnErrorWhereNoneMayLeaveEndsTheProcessLikeOthers) {
  const auto destroy = [](const auto& error) noexcept {
    const std::function<void()> body = [&] { throw error; };
    body();
  };
  report_uncaught_errors();
  EXPECT_EXIT(destroy(std::bad_alloc()),
              ::testing::ExitedWithCode(5),
              ::testing::HasSubstr("lockstep: error: rank 0: out of memory\n  why: "));
  EXPECT_EXIT(destroy(std::out_of_range("at")),
              ::testing::ExitedWithCode(1),
              ::testing::HasSubstr("a bug in Lockstep"));
  std::set_terminate(std::abort);
}

}  // namespace
}  // namespace lockstep::trainers::report_error_test
