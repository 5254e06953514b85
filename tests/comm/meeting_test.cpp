// Ranks that find each other over the loopback device, and processes that disturb them.
#include "comm/tcp/meeting.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "comm/tcp/meeting_file.h"
#include "core/digest.h"
#include "core/error.h"
#include "tests/comm/meeting_ranks.h"
#include "tests/support/temp_dir.h"

namespace lockstep::comm::tcp::meeting_test {
namespace {

using namespace std::chrono_literals;
using namespace meeting_ranks;  // NOLINT(google-build-using-namespace): these tests' helpers
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Meeting, RanksFindEachOtherInAnyOrder) {
  auto two = meet_all(local_place(), {0, 1}, 2);
  expect_full_mesh(two);
  auto six = meet_all(local_place(), {0, 1, 2, 3, 4, 5}, 6);
  expect_full_mesh(six);

  const MeetingPlace place = local_place();  // rank 0 comes last
  std::vector<Outcome> late(3);
  std::vector<std::thread> threads;
  for (int rank = 2; rank >= 0; --rank) {
    threads.emplace_back([&, rank] {
      late[static_cast<size_t>(rank)] = try_to_meet(place, rank, 3, {.timeout = 20s, .note = {}});
    });
    std::this_thread::sleep_for(100ms);
  }
  for (std::thread& thread : threads) thread.join();
  expect_full_mesh(late);
}

TEST(Meeting, InAFileThatIsGoneThen) {
  const testing::TempDir dir;
  const std::string path = (dir / "meet").string();
  const MeetingPlace place = {.file = path, .host = {}, .ports = {}, .token = {}};
  {  // the file that a killed rank 0 left
    std::ofstream(path) << "lockstep meeting 1\n00000000000000aa 00000000000000bb\n127.0.0.1 1\n";
    std::filesystem::permissions(path, std::filesystem::perms(0600));
  }
  auto ranks = meet_all(place, {0, 1, 2}, 3);
  expect_full_mesh(ranks);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(Meeting, AFileOfOthersIsRefused) {
  const testing::TempDir dir;
  const std::string path = (dir / "meet").string();
  std::ofstream(path) << "lockstep meeting 1\n";
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  const Outcome guest = try_to_meet(
      {.file = path, .host = {}, .ports = {}, .token = {}}, 1, 2, {.timeout = 1s, .note = {}});
  EXPECT_THAT(guest.error, HasSubstr("other users may read or write it"));
  const Outcome host =
      try_to_meet({.file = (dir / "no" / "meet").string(), .host = {}, .token = {}},
                  0,
                  2,
                  {.timeout = 1s, .note = {}});
  EXPECT_THAT(host.error, HasSubstr("No such file or directory"));
}

TEST(Meeting, AbsentRanksAreNamedToAllThatCame) {
  const auto ranks = meet_all(local_place(), {0, 1, 4}, 5, {.timeout = 1s, .note = {}});
  for (const Outcome& rank : ranks) {
    EXPECT_THAT(rank.error, HasSubstr("2 of 5 ranks did not come: ranks 2, 3 | rank 0 waited 1 s"));
    EXPECT_EQ(rank.code, ExitCode::kPeerLost);
  }
}

TEST(Meeting, AListOfAbsentRanksIsShort) {
  const Outcome host = try_to_meet(local_place(), 0, 100000, {.timeout = 10ms, .note = {}});
  EXPECT_THAT(host.error, HasSubstr("ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 99987 more"));
}

TEST(Meeting, WithoutRank0TheOthersSayWhereTheyLooked) {
  const MeetingPlace place = local_place();
  const Outcome alone = try_to_meet(place, 1, 2, {.timeout = 300ms, .note = {}});
  EXPECT_THAT(alone.error,
              AllOf(HasSubstr("rank 1 did not find rank 0"),
                    HasSubstr(to_string(place)),
                    HasSubstr("Connection refused")));
  const Outcome lost =
      try_to_meet({.file = {}, .host = "no-such-host.invalid", .ports = {80}, .token = {}},
                  1,
                  2,
                  {.timeout = 300ms, .note = {}});
  EXPECT_THAT(lost.error, HasSubstr("the host no-such-host.invalid is not known"));
}

TEST(Meeting, ABusyPortIsNamed) {
  const MeetingPlace place = local_place();
  const UniqueFd holder = listen_at(Address(Address::any(AF_INET, place.ports[0])));
  ASSERT_TRUE(holder.valid());
  const Outcome host = try_to_meet(place, 0, 2, {.timeout = 1s, .note = {}});
  EXPECT_THAT(
      host.error,
      HasSubstr("port " + std::to_string(place.ports[0]) + " is in use by another program"));
  EXPECT_EQ(host.code, ExitCode::kEnvironment);
}

TEST(Meeting, TheFirstFreeOfSeveralPortsIsFound) {
  MeetingPlace place = local_place();
  const UniqueFd holder = listen_at(Address(Address::any(AF_INET, place.ports[0])));
  ASSERT_TRUE(holder.valid());
  place.ports.push_back(free_port());
  auto ranks = meet_all(place, {0, 1}, 2, {.timeout = 30s, .note = {}});
  expect_full_mesh(ranks);
}

TEST(Meeting, ARankThatLeftMayComeAgain) {
  const MeetingPlace place = local_place();
  Notes notes;
  std::vector<Outcome> ranks(3);
  std::thread host(
      [&] { ranks[0] = try_to_meet(place, 0, 3, {.timeout = 30s, .note = notes.note()}); });
  {
    const UniqueFd short_lived = caller_of(place);
    say_hello(short_lived,
              {.key = digest(std::as_bytes(std::span(place.token))), .rank = 1, .size = 3});
    Reply reply;
    ASSERT_TRUE(receive_all(
        short_lived.get(), std::as_writable_bytes(std::span(&reply, 1)), Clock::now() + 5s));
    EXPECT_EQ(reply.kind, Reply::Kind::kWelcome);
  }
  std::thread second([&] { ranks[2] = try_to_meet(place, 2, 3, {.timeout = 30s, .note = {}}); });
  ranks[1] = try_to_meet(place, 1, 3, {.timeout = 30s, .note = {}});
  host.join();
  second.join();
  expect_full_mesh(ranks);
}

TEST(Meeting, ARankThatComesTwiceIsNamedToAll) {
  const auto ranks = meet_all(local_place(), {0, 1, 1}, 3, {.timeout = 20s, .note = {}});
  for (const Outcome& rank : ranks) {
    EXPECT_THAT(rank.error, HasSubstr("two processes say that they are rank 1 | one is at"));
    EXPECT_EQ(rank.code, ExitCode::kUsage);
  }
}

// Rank numbers that are out of range, or rank 0's own.
TEST(Meeting, ARankThatCannotBeEndsTheMeeting) {
  for (const int rank : {-1, 0, 3}) {
    const MeetingPlace place = local_place();
    Outcome host;
    std::thread thread([&] { host = try_to_meet(place, 0, 3, {.timeout = 20s, .note = {}}); });
    const UniqueFd caller = caller_of(place);
    say_hello(caller,
              {.key = digest(std::as_bytes(std::span(place.token))), .rank = rank, .size = 3});
    Reply reply;
    EXPECT_TRUE(
        receive_all(caller.get(), std::as_writable_bytes(std::span(&reply, 1)), Clock::now() + 5s));
    thread.join();
    EXPECT_EQ(reply.kind, Reply::Kind::kFailed) << rank;
    EXPECT_EQ(host.code, ExitCode::kUsage) << host.error;
    const std::string named = fmt::format("rank {}", rank);
    EXPECT_THAT(host.error, HasSubstr(rank == 0 ? named + " | " : named + " among 3 ranks | "));
  }
}

TEST(Meeting, DifferentNumbersOfRanksAreNamedToBoth) {
  const MeetingPlace place = local_place();
  Outcome host;
  std::thread thread([&] { host = try_to_meet(place, 0, 2, {.timeout = 20s, .note = {}}); });
  const Outcome guest = try_to_meet(place, 1, 4, {.timeout = 20s, .note = {}});
  thread.join();
  for (const Outcome& rank : {std::cref(host), std::cref(guest)}) {
    EXPECT_THAT(rank.error,
                HasSubstr("different numbers of ranks | rank 1 at 127.0.0.1 was told 4"));
  }
}

TEST(Meeting, ASignalToRank0EndsItForAll) {
  const MeetingPlace place = local_place();
  std::atomic<bool> stopped = false;
  const auto stop = [&] { return stopped.load(); };
  std::vector<Outcome> ranks(2);
  std::thread host(
      [&] { ranks[0] = try_to_meet(place, 0, 3, {.timeout = 30s, .note = {}, .stop = stop}); });
  std::thread guest([&] { ranks[1] = try_to_meet(place, 1, 3, {.timeout = 30s, .note = {}}); });
  std::this_thread::sleep_for(300ms);
  stopped = true;
  host.join();
  guest.join();
  for (const Outcome& rank : ranks) {
    EXPECT_EQ(rank.code, ExitCode::kStopped) << rank.error;
    EXPECT_THAT(rank.error, HasSubstr("stopped by a signal before all ranks had come"));
  }
  const Outcome alone =
      try_to_meet(local_place(), 1, 2, {.timeout = 30s, .note = {}, .stop = stop});
  EXPECT_EQ(alone.code, ExitCode::kStopped);
}

}  // namespace
}  // namespace lockstep::comm::tcp::meeting_test
