// Processes that are no ranks and connect to a meeting, or answer in rank 0's place.
#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/tcp/host_meeting.h"
#include "core/digest.h"
#include "core/error.h"
#include "tests/comm/meeting_ranks.h"

namespace lockstep::comm::tcp::meeting_strangers_test {
namespace {

using namespace std::chrono_literals;
using namespace meeting_ranks;  // NOLINT(google-build-using-namespace): these tests' helpers
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MeetingStrangers, StrangersAreRefusedNamedAndDisturbNobody) {
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

TEST(MeetingStrangers, AFloodOfStrangersLeavesRoom) {
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

// Each says a byte, and comes again as soon as it is refused.
TEST(MeetingStrangers, ARankComesThroughAFloodOfHalfGreetings) {
  const MeetingPlace place = local_place();
  std::vector<Outcome> ranks(2);
  std::thread host([&] { ranks[0] = try_to_meet(place, 0, 2, {.timeout = 30s, .note = {}}); });
  std::atomic<bool> over = false;
  std::thread flood([&] {
    std::deque<UniqueFd> talkers;
    const uint64_t magic = Hello::kMagic;
    while (!over) {
      std::string problem;
      UniqueFd socket = connect_to(Address(loopback(), place.ports[0]), Clock::now() + 1s, problem);
      if (socket.valid()) ::send(socket.get(), &magic, 1, MSG_NOSIGNAL);
      talkers.push_back(std::move(socket));
      if (talkers.size() > 4 * RankListener::kMaxWaiting) talkers.pop_front();
    }
  });
  std::this_thread::sleep_for(100ms);
  ranks[1] = try_to_meet(place, 1, 2, {.timeout = 30s, .note = {}});
  host.join();
  over = true;
  flood.join();
  expect_full_mesh(ranks);
}

// Needs another user, so root.
TEST(MeetingStrangers, AnotherUserOfTheHostIsNoRankAndNoRank0) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  constexpr uid_t kNobody = 65534;
  const MeetingPlace place = local_place();
  Notes notes;
  std::vector<Outcome> ranks(2);
  // Before the thread: a child would keep a lock of malloc's that the thread holds at the fork.
  const pid_t stranger = ::fork();
  if (stranger == 0) {  // it knows the key
    if (::setuid(kNobody) != 0) ::_exit(2);
    const UniqueFd caller = caller_of(place);
    say_hello(caller, {.key = digest(std::as_bytes(std::span(place.token))), .rank = 1, .size = 2});
    Reply reply;
    receive_all(caller.get(), std::as_writable_bytes(std::span(&reply, 1)), Clock::now() + 5s);
    ::_exit(reply.kind == Reply::Kind::kRefused ? 0 : 1);
  }
  std::thread host(
      [&] { ranks[0] = try_to_meet(place, 0, 2, {.timeout = 30s, .note = notes.note()}); });
  int status = -1;
  ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
  EXPECT_EQ(status, 0);
  ranks[1] = try_to_meet(place, 1, 2, {.timeout = 30s, .note = {}});
  host.join();
  expect_full_mesh(ranks);
  EXPECT_THAT(notes.all(), HasSubstr("it belongs to another user of this host"));

  const MeetingPlace taken = local_place();
  const pid_t false_host = ::fork();
  if (false_host == 0) {
    if (::setuid(kNobody) != 0) ::_exit(2);
    try_to_meet(taken, 0, 2, {.timeout = 20s, .note = {}});
    ::_exit(0);
  }
  caller_of(taken);  // until it listens
  const Outcome guest = try_to_meet(taken, 1, 2, {.timeout = 1s, .note = {}});
  ::kill(false_host, SIGKILL);
  ::waitpid(false_host, nullptr, 0);
  EXPECT_THAT(guest.error,
              AllOf(HasSubstr("rank 1 did not find rank 0"), HasSubstr("another user")));
}

// Another program at rank 0's address sends other data, of any length.
TEST(MeetingStrangers, AFalseRank0IsNotBelieved) {
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

TEST(Meeting, ErrorsTravelWhole) {
  const UsageError error("what", "why", "hint");
  const Error again = decode_error(encode_error(error));
  EXPECT_EQ(format_error(again), format_error(error));
  EXPECT_EQ(again.code(), ExitCode::kUsage);
  EXPECT_EQ(again.remedy(), error.remedy());
  EXPECT_EQ(decode_error("2\n999\na\nb\nc").remedy(), Remedy::kNone);
  EXPECT_EQ(decode_error("2\n0\na\x1b\nb\x7f\n").what(), std::string("a\\x1b"));
  EXPECT_EQ(decode_error("2\n0\na\x1b\nb\x7f\n").why(), "b\\x7f");
}

TEST(Meeting, OnlyAFailureIsBelievedAsAnExitCode) {
  for (const int code : {1, 2, 3, 4, 5, 6, 43, 75}) {
    EXPECT_EQ(decode_error(fmt::format("{}\n0\nwhat", code)).code(), ExitCode{code});
  }
  for (const char* const code : {"0",
                                 "256",
                                 "-256",
                                 "512",
                                 "-1",
                                 "7",
                                 "143",
                                 "4294967296",
                                 "4294967298",
                                 "",
                                 "2x",
                                 "none"}) {
    EXPECT_EQ(decode_error(fmt::format("{}\n0\nwhat", code)).code(), ExitCode::kPeerLost) << code;
  }
}

}  // namespace
}  // namespace lockstep::comm::tcp::meeting_strangers_test
