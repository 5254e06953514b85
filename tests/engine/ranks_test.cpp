// Ranks that are missing, gone, or called wrongly by users of the library: exceptions, and no end
// of the process.
#include <atomic>
#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/connect.h"
#include "tests/engine/trainings.h"
#include "tests/support/temp_dir.h"

namespace lockstep::testing::ranks_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// What the error of a rank was.
template <class E>
std::string nested_error_of(const std::function<void()>& body) {
  return error_of<E>([&] {
    try {
      body();
    } catch (const RankError& error) {
      std::rethrow_if_nested(error);
    }
  });
}

TEST(Ranks, OneThatIsMissingIsACommErrorAfterTheStallTime) {
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<bool> has_given_up = false;
  EXPECT_THAT(nested_error_of<CommError>([&] {
                spawn(
                    2,
                    [&](Communicator& peers) {
                      if (peers.rank() == 0) {
                        try {
                          train_digits(peers, short_options(), 1);
                        } catch (const Error&) {
                          has_given_up = true;
                          throw;
                        }
                      }
                      while (!has_given_up) std::this_thread::sleep_for(10ms);
                    },
                    200ms);
              }),
              HasSubstr("rank 0 gave up waiting"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

TEST(Ranks, ACallAfterTheOthersEndedIsACommError) {
  EXPECT_THAT(nested_error_of<CommError>([] {
                spawn(2, [](Communicator& peers) {
                  if (peers.rank() == 0) train_digits(peers, short_options(), 1);
                });
              }),
              HasSubstr("lost"));
}

TEST(Ranks, EveryCallAfterAnErrorEndsAtOnceWithTheSame) {
  spawn(2, [](Communicator& peers) {
    if (peers.rank() == 1) return;
    const std::string first = error_of<CommError>([&] { peers.barrier(); });
    const auto begin = std::chrono::steady_clock::now();
    int64_t sum = 1;
    EXPECT_EQ(error_of<CommError>([&] { peers.all_reduce_sum(std::span(&sum, 1)); }), first);
    EXPECT_EQ(error_of<CommError>([&] { peers.allocate({4}, Dtype::kF32); }), first);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  });
}

// Rank 0's second thread calls while its first one waits in a call; what that one does is not hurt.
void two_threads_call(Communicator& peers, std::atomic<bool>& was_refused) {
  if (peers.rank() == 1) {
    while (!was_refused) std::this_thread::sleep_for(1ms);
    peers.barrier();
    return;
  }
  std::thread second([&] {
    std::this_thread::sleep_for(50ms);
    EXPECT_THAT(error_of<UsageError>([&] { peers.barrier(); }), HasSubstr("two threads"));
    was_refused = true;
  });
  peers.barrier();
  second.join();
}

TEST(Ranks, TwoThreadsInOneCommunicatorAreAUsageError) {
  std::atomic<bool> was_refused = false;
  spawn(2, [&](Communicator& peers) {
    two_threads_call(peers, was_refused);
    int64_t sum = peers.rank();
    peers.all_reduce_sum(std::span(&sum, 1));
    EXPECT_EQ(sum, 1);
  });
}

TEST(Ranks, ACommunicatorMayGoToAnotherThread) {
  spawn(2, [](Communicator& peers) {
    peers.barrier();
    std::thread([&] { peers.barrier(); }).join();
    peers.barrier();
  });
}

comm::ConnectOptions quick(comm::Transport transport) {
  return {.stall_abort = 300ms, .transport = transport, .rendezvous_timeout = 10s};
}

comm::Connection meet(const TempDir& dir, int rank, const comm::ConnectOptions& options) {
  return comm::connect(
      {.launcher = comm::Launcher::kByHand,
       .rank = rank,
       .size = 2,
       .local_rank = rank,
       .local_size = 2,
       .place = comm::MeetingPlace{.file = (dir / "meet").string(), .host = {}, .token = {}}},
      options);
}

TEST(Ranks, OneThatNeverComesToTheMeetingIsAnError) {
  const TempDir dir;
  comm::ConnectOptions options = quick(comm::Transport::kTcp);
  options.rendezvous_timeout = 200ms;
  error_of<Error>([&] { meet(dir, 0, options); });
}

// Two processes: the peer comes, and then body(connection) runs on both.
int exit_code_of_two(const std::function<void(comm::Connection&)>& body,
                     comm::ConnectOptions options) {
  const TempDir dir;
  const pid_t child = ::fork();
  const int rank = child == 0 ? 1 : 0;
  try {
    comm::Connection connection = meet(dir, rank, options);
    body(connection);
  } catch (const std::exception& error) {
    if (rank == 1) ::_exit(9);
    ADD_FAILURE() << error.what();
  }
  if (rank == 1) ::_exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class Lost : public ::testing::TestWithParam<comm::Transport> {};

// The library does not end the process: what lost_at_end did by default, up to this test.
TEST_P(Lost, APeerThatDoesNotComeToTheEndIsTold) {
  std::string told;
  comm::ConnectOptions options = quick(GetParam());
  options.lost_at_end = [&](const Error& error) { told = error.what(); };
  EXPECT_EQ(exit_code_of_two(
                [](comm::Connection& connection) {
                  connection.ranks->barrier();
                  if (connection.ranks->rank() == 1) ::_exit(7);
                },
                options),
            7);
  EXPECT_THAT(told, HasSubstr("rank 0"));
}

TEST_P(Lost, APeerThatDoesNotComeToTheEndEndsNoProcess) {
  EXPECT_EQ(exit_code_of_two(
                [](comm::Connection& connection) {
                  if (connection.ranks->rank() == 1) ::_exit(7);
                },
                quick(GetParam())),
            7);
}

TEST_P(Lost, AnErrorThatWasCaughtIsNotWaitedForAgain) {
  std::string told;
  comm::ConnectOptions options = quick(GetParam());
  options.lost_at_end = [&](const Error& error) { told = error.what(); };
  EXPECT_EQ(exit_code_of_two(
                [](comm::Connection& connection) {
                  if (connection.ranks->rank() == 1) ::_exit(7);
                  error_of<CommError>([&] { connection.ranks->barrier(); });
                },
                options),
            7);
  EXPECT_EQ(told, "");
}

INSTANTIATE_TEST_SUITE_P(Transports,
                         Lost,
                         ::testing::Values(comm::Transport::kTcp, comm::Transport::kShm));

}  // namespace
}  // namespace lockstep::testing::ranks_test
