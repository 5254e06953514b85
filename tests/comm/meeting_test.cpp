// Ranks that find each other over the loopback device, and processes that disturb them.
#include "comm/tcp/meeting.h"

#include <atomic>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "comm/tcp/host_meeting.h"
#include "comm/tcp/meeting_file.h"
#include "core/digest.h"
#include "core/error.h"
#include "tests/support/temp_dir.h"

namespace lockstep::comm::tcp::meeting_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A port that was free just now.
uint16_t free_port() {
  return Address::of_socket(listen_at(Address::any(AF_INET, 0)).get()).port();
}

MeetingPlace local_place(const std::string& token = "job") {
  return {.file = {}, .host = "127.0.0.1", .ports = {free_port()}, .token = token};
}

struct Outcome {
  std::optional<Peers> peers;
  std::string error;  // "what | why"
  ExitCode code = ExitCode::kDone;
};

class Notes {
 public:
  Note note() {
    return [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      all_ += text + "\n";
    };
  }
  std::string all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::string all_;
};

Outcome try_to_meet(const MeetingPlace& place, int rank, int size, const MeetingOptions& options) {
  try {
    return {.peers = meet(place, rank, size, options), .error = {}};
  } catch (const Error& error) {
    return {.peers = {},
            .error = std::string(error.what()) + " | " + error.why(),
            .code = error.code()};
  }
}

// Runs the given ranks of `size`, each on a thread.
std::vector<Outcome> meet_all(const MeetingPlace& place,
                              const std::vector<int>& ranks,
                              int size,
                              const MeetingOptions& options = {.timeout = 20s, .note = {}}) {
  std::vector<Outcome> outcomes(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] { outcomes[i] = try_to_meet(place, ranks[i], size, options); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

// Every two ranks must have the two ends of one connection.
void expect_full_mesh(std::vector<Outcome>& ranks) {
  const int size = static_cast<int>(ranks.size());
  for (int a = 0; a < size; ++a) {
    ASSERT_TRUE(ranks[static_cast<size_t>(a)].peers) << ranks[static_cast<size_t>(a)].error;
    EXPECT_EQ(ranks[static_cast<size_t>(a)].peers->hosts, ranks[0].peers->hosts);
  }
  const auto deadline = Clock::now() + 5s;
  for (int a = 0; a < size; ++a) {
    for (int b = 0; b < size; ++b) {
      if (a == b) continue;
      const int said = 100 * a + b;
      int heard = -1;
      const int from = ranks[static_cast<size_t>(a)].peers->sockets[static_cast<size_t>(b)].get();
      const int to = ranks[static_cast<size_t>(b)].peers->sockets[static_cast<size_t>(a)].get();
      EXPECT_TRUE(send_all(from, std::as_bytes(std::span(&said, 1)), deadline));
      EXPECT_TRUE(receive_all(to, std::as_writable_bytes(std::span(&heard, 1)), deadline));
      EXPECT_EQ(heard, said);
    }
  }
}

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

UniqueFd caller_of(const MeetingPlace& place) {
  std::string problem;
  std::vector<Address> candidates = resolve(place.host, place.ports[0], problem);
  for (int i = 0; i < 500; ++i) {
    UniqueFd socket = connect_to(candidates.at(0), Clock::now() + 1s, problem);
    if (socket.valid()) return socket;
    std::this_thread::sleep_for(10ms);
  }
  ADD_FAILURE() << problem;
  return {};
}

template <class T>
void say(const UniqueFd& socket, const T& what) {
  const auto bytes = std::as_bytes(std::span(what));
  EXPECT_TRUE(send_all(socket.get(), bytes, Clock::now() + 5s));
}

void say_hello(const UniqueFd& socket, const Hello& hello) {
  say(socket, std::span(&hello, 1));
}

TEST(Meeting, StrangersAreRefusedNamedAndDisturbNobody) {
  const MeetingPlace place = local_place();
  Notes notes;
  std::vector<Outcome> ranks(2);
  std::thread host(
      [&] { ranks[0] = try_to_meet(place, 0, 2, {.timeout = 30s, .note = notes.note()}); });
  const UniqueFd browser = caller_of(place);
  say(browser, std::string_view("GET / HTTP/1.1\r\n\r\n"));
  const UniqueFd silent = caller_of(place);
  const UniqueFd other_job = caller_of(place);
  say_hello(other_job, {.key = 1, .rank = 1, .size = 2});
  const UniqueFd newer = caller_of(place);
  say_hello(newer, {.version = 9, .rank = 1, .size = 2});
  caller_of(place);  // connects and disconnects
  const UniqueFd half = caller_of(place);
  const Hello hello;
  say(half, std::span(reinterpret_cast<const char*>(&hello), 20));

  Reply reply;
  ASSERT_TRUE(receive_all(
      other_job.get(), std::as_writable_bytes(std::span(&reply, 1)), Clock::now() + 5s));
  EXPECT_EQ(reply.kind, Reply::Kind::kRefused);
  for (int i = 0; i < 100 && notes.all().find("left") == std::string::npos; ++i) {
    std::this_thread::sleep_for(20ms);
  }
  ranks[1] = try_to_meet(place, 1, 2, {.timeout = 30s, .note = {}});
  host.join();
  expect_full_mesh(ranks);
  const std::string browser_address = Address::of_socket(browser.get()).to_string();
  EXPECT_THAT(notes.all(),
              AllOf(HasSubstr("refused a connection from " + browser_address +
                              ": it is not a rank of Lockstep"),
                    HasSubstr("it is a rank of another job"),
                    HasSubstr("it is a rank of another version of Lockstep"),
                    HasSubstr("it left without a word")));
}

TEST(Meeting, AFloodOfStrangersLeavesRoom) {
  const MeetingPlace place = local_place();
  Notes notes;
  std::vector<Outcome> ranks(2);
  std::thread host(
      [&] { ranks[0] = try_to_meet(place, 0, 2, {.timeout = 30s, .note = notes.note()}); });
  std::vector<UniqueFd> flood;
  for (size_t i = 0; i < 3 * RankListener::kMaxWaiting; ++i) flood.push_back(caller_of(place));
  ranks[1] = try_to_meet(place, 1, 2, {.timeout = 30s, .note = {}});
  host.join();
  expect_full_mesh(ranks);
  EXPECT_LE(std::ranges::count(notes.all(), '\n'), RankListener::kMaxNotes);
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

// Another program at rank 0's address sends other data, of any length.
TEST(Meeting, AFalseRank0IsNotBelieved) {
  const UniqueFd listener = listen_at(Address(Address::any(AF_INET, 0)));
  const MeetingPlace place = {.file = {},
                              .host = "127.0.0.1",
                              .ports = {Address::of_socket(listener.get()).port()},
                              .token = {}};
  std::atomic<bool> over = false;
  std::thread liar([&] {
    std::vector<UniqueFd> callers;
    while (!over) {
      UniqueFd caller(::accept4(listener.get(), nullptr, nullptr, 0));
      if (!caller.valid()) {
        std::this_thread::sleep_for(5ms);
        continue;
      }
      const Reply huge = {.kind = Reply::Kind::kRankTable, .bytes = 0xffffffff};
      say(caller, std::span(&huge, 1));
      callers.push_back(std::move(caller));
    }
  });
  const Outcome guest = try_to_meet(place, 1, 2, {.timeout = 500ms, .note = {}});
  over = true;
  liar.join();
  EXPECT_THAT(guest.error, HasSubstr("does not answer as a rank 0 of Lockstep"));
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

TEST(Meeting, ErrorsTravelWhole) {
  const UsageError error("what", "why", "hint");
  const Error again = decode_error(encode_error(error));
  EXPECT_EQ(format_error(again), format_error(error));
  EXPECT_EQ(again.code(), ExitCode::kUsage);
  EXPECT_EQ(again.remedy(), error.remedy());
  EXPECT_EQ(decode_error("nonsense").code(), ExitCode::kPeerLost);
  EXPECT_EQ(decode_error("2\n999\na\nb\nc").remedy(), Remedy::kNone);
  EXPECT_EQ(decode_error("2\n0\na\x1b\nb\x7f\n").what(), std::string("a\\x1b"));
  EXPECT_EQ(decode_error("2\n0\na\x1b\nb\x7f\n").why(), "b\\x7f");
}

}  // namespace
}  // namespace lockstep::comm::tcp::meeting_test
