#include "engine/observe/flight_files.h"

#include <filesystem>
#include <memory>

#include <gmock/gmock.h>

#include "comm/shared/thread_ranks.h"
#include "comm/single.h"
#include "engine/observe/rank_process.h"
#include "tests/support/temp_dir.h"
#include "trainers/flight/flight_verdict.h"
#include "trainers/flight/last_words.h"

namespace lockstep::trainers::flight_files_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Opens the files of a rank; only rank 0 knows the run directory.
std::string open_files(FlightFiles& files, Communicator& ranks, const fs::path& run) {
  if (ranks.rank() != 0) return files.open(ranks, nullptr);
  const Folder folder(run);
  return files.open(ranks, &folder);
}

TEST(FlightFiles, AreReadWhileRanksRunAndStayInTheRunDirectoryAtTheirEnd) {
  const testing::TempDir dir;
  fs::path memory;
  comm::spawn_ranks(2, [&](Communicator& ranks) {
    FlightRecorder recorder(ranks.rank(), 2, host_of_processes());
    FlightFiles files(&recorder);
    EXPECT_EQ(open_files(files, ranks, dir.path()), "");
    recorder.enter_part("evaluation", -1);
    ranks.barrier();
    if (ranks.rank() == 0) {
      memory = fs::read_symlink(dir / "flight" / "rank-1");
      EXPECT_EQ(memory.parent_path(), "/dev/shm");
      const RunFlight live = read_flights(dir.path());
      ASSERT_EQ(live.flights.size(), 2U);
      EXPECT_NE(live.flights[1].process, kProcessGone);
      EXPECT_EQ(place_of(live.flights[1]), "evaluation");
    }
    ranks.barrier();
    files.end(ExitCode::kDone);
  });
  EXPECT_FALSE(fs::is_symlink(dir / "flight" / "rank-1"));
  EXPECT_FALSE(fs::exists(memory));
  const RunFlight over = read_flights(dir.path());
  EXPECT_EQ(over.flights.at(1).state.end.number, 0);
  EXPECT_THAT(verdict_on(over).text, HasSubstr("no verdict: the run ended by itself"));
}

TEST(FlightFiles, LieInAnyDirectory) {
  const testing::TempDir dir;
  const fs::path odd = dir / "two\nlines";
  fs::create_directory(odd);
  comm::spawn_ranks(2, [&](Communicator& ranks) {
    FlightRecorder recorder(ranks.rank(), 2, host_of_processes());
    FlightFiles files(&recorder);
    EXPECT_EQ(open_files(files, ranks, odd), "");
    ranks.barrier();
    files.end(ExitCode::kDone);
  });
  EXPECT_EQ(read_flights(odd).flights.size(), 2U);
}

// Rank 1 is killed, which releases its lock; rank 0 fails.
TEST(FlightFiles, AFailedRankKeepsTheRecordOfAKilledOne) {
  const testing::TempDir dir;
  fs::path memory;
  std::unique_ptr<FlightRecorder> first;
  std::unique_ptr<FlightFiles> kept;
  comm::spawn_ranks(2, [&](Communicator& ranks) {
    auto recorder = std::make_unique<FlightRecorder>(ranks.rank(), 2, host_of_processes());
    auto files = std::make_unique<FlightFiles>(recorder.get());
    EXPECT_EQ(open_files(*files, ranks, dir.path()), "");
    recorder->enter_call(7, "bucket 0");
    if (ranks.rank() == 0) recorder->begin_wait(7, "bucket 0");
    ranks.barrier();
    if (ranks.rank() == 1) return;
    memory = fs::read_symlink(dir / "flight" / "rank-1");
    first = std::move(recorder);
    kept = std::move(files);
  });
  EXPECT_TRUE(fs::exists(memory));
  kept->fail(CommError("rank 0 lost a peer"));
  EXPECT_FALSE(fs::exists(memory));
  const RunFlight run = read_flights(dir.path());
  ASSERT_EQ(run.flights.size(), 2U);
  EXPECT_EQ(run.flights[1].process, kProcessGone);
  EXPECT_EQ(run.flights[0].state.end.number, 75);
  const std::string said = last_words(dir.path(), 0);
  EXPECT_THAT(said,
              HasSubstr("  verdict: rank 1 crashed or was killed: its process is gone; rank 0"));
  EXPECT_THAT(said, HasSubstr("\n  see: lockstep flight " + dir.path().string() + "\n"));
  EXPECT_THAT(last_words({}, 0), IsEmpty());
}

TEST(FlightFiles, TheNextRunRemovesWhatAKilledOneLeft) {
  const testing::TempDir dir;
  fs::path memory;
  comm::SingleCommunicator alone;
  {
    FlightRecorder recorder(0, 1, host_of_processes());
    FlightFiles killed(&recorder);
    EXPECT_EQ(open_files(killed, alone, dir.path()), "");
    memory = fs::read_symlink(dir / "flight" / "rank-0");
  }
  EXPECT_TRUE(fs::exists(memory));
  testing::write_text(dir / "precious", "kept");
  fs::create_symlink(dir / "precious", dir / "flight" / "rank-1");
  FlightRecorder recorder(0, 1, host_of_processes());
  FlightFiles next(&recorder);
  EXPECT_EQ(open_files(next, alone, dir.path()), "");
  EXPECT_FALSE(fs::exists(memory));
  EXPECT_TRUE(fs::exists(dir / "precious"));
  EXPECT_FALSE(fs::is_symlink(dir / "flight" / "rank-1"));
  next.end(ExitCode::kDone);
}

TEST(FlightFiles, AHostThatSeesAnotherFolderIsTold) {
  const testing::TempDir dir;
  comm::spawn_ranks(2, [&](Communicator& ranks) {
    FlightRecorder recorder(ranks.rank(), 2, host_of_processes());
    FlightFiles files(&recorder);
    const Folder folder(dir.path());
    if (ranks.rank() == 0) {
      const Folder gone("/proc/self");
      EXPECT_THAT(files.open(ranks, &gone), HasSubstr("rank 0: "));
    } else {
      EXPECT_THAT(files.open(ranks, nullptr), HasSubstr("rank 1: "));
    }
    recorder.enter_part("goes on", -1);
    files.end(ExitCode::kDone);
  });
  EXPECT_FALSE(fs::exists(dir / "flight"));
}

TEST(ReadFlights, RefusesWhatIsNoRecord) {
  const testing::TempDir dir;
  EXPECT_THROW(read_flights(dir.path()), DataError);
  fs::create_directories(dir / "flight" / "rank-2");
  testing::write_text(dir / "flight" / "rank-0", "short");
  testing::write_text(dir / "flight" / "rank-1", std::string(sizeof(FlightRecord), '\x1b'));
  testing::write_text(dir / "flight" / "rank-007", "");
  const RunFlight run = read_flights(dir.path());
  EXPECT_TRUE(run.flights.empty());
  ASSERT_EQ(run.problems.size(), 3U);
  EXPECT_THAT(run.problems[0], HasSubstr("rank 0: it has 5 bytes, expected "));
  EXPECT_THAT(run.problems[1], HasSubstr("rank 1: its first bytes are wrong"));
  EXPECT_THAT(run.problems[2], HasSubstr("rank 2: it is not a file"));
  EXPECT_THAT(verdict_on(run).text, HasSubstr("no verdict: "));
}

}  // namespace
}  // namespace lockstep::trainers::flight_files_test
