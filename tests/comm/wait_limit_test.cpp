// Tests waits for ranks that are busy for a long time, such as with a slow disk: limits, warnings,
// records.
#include "comm/wait_limit.h"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "comm/shared/thread_ranks.h"
#include "core/flight_recorder.h"
#include "tests/support/mailbox_ranks.h"

namespace lockstep::comm::wait_limit_test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr milliseconds kDeadline{200};

using Spawn = void (*)(int, const std::function<void(Communicator&)>&, milliseconds);

class SlowParts : public ::testing::TestWithParam<Spawn> {
 protected:
  // Rank 1 of three is busy for this long. Returns the warnings, or the error's reason.
  std::vector<std::string> spawn(milliseconds busy, std::chrono::seconds limit) {
    std::mutex mutex;
    std::vector<std::string> told;
    const auto body = [&](Communicator& peers) {
      const SlowPart part{.doing = "saving",
                          .limit = limit,
                          .tell =
                              [&](const std::string& note) {
                                const std::lock_guard lock(mutex);
                                told.push_back(note);
                              },
                          .is_stopped = is_stopped_};
      peers.enter(&part);
      if (peers.rank() == 1) std::this_thread::sleep_for(busy);
      peers.barrier();
      peers.enter(nullptr);
    };
    try {
      GetParam()(3, body, kDeadline);
    } catch (const CommError& error) {
      return {error.why()};
    }
    return told;
  }

  std::function<bool(int rank)> is_stopped_;
};

TEST_P(SlowParts, ASlowRankIsWaitedForAndNamed) {
  EXPECT_THAT(spawn(2 * kDeadline, std::chrono::seconds(60)),
              ElementsAre("rank 1 is still saving; the other ranks wait for 60 s at most"));
  EXPECT_THAT(spawn(milliseconds(0), std::chrono::seconds(60)), ElementsAre());
}

TEST_P(SlowParts, TheirLimitHasAMessageOfItsOwn) {
  EXPECT_THAT(spawn(milliseconds(1500), std::chrono::seconds(1)),
              ElementsAre("rank 1 is still saving after 1 s"));
}

TEST_P(SlowParts, AStoppedRankIsNotWaitedForAsASlowOne) {
  for (const int stopped : {0, 1}) {  // rank 0 is there
    is_stopped_ = [stopped](int rank) { return rank == stopped; };
    const std::vector<std::string> told = spawn(milliseconds(2000), std::chrono::seconds(60));
    EXPECT_THAT(told.back(),
                HasSubstr(stopped == 1 ? "rank 1 did not take part for 0.2 s" : "still saving"));
  }
}

TEST_P(SlowParts, OtherWaitsKeepTheirDeadline) {
  const auto body = [](Communicator& peers) {
    const SlowPart part{.doing = "saving", .limit = std::chrono::seconds(60), .tell = {}};
    peers.enter(&part);
    peers.barrier();
    peers.enter(nullptr);
    if (peers.rank() == 1) std::this_thread::sleep_for(4 * kDeadline);
    peers.barrier();
  };
  try {
    GetParam()(3, body, kDeadline);
    FAIL() << "no error";
  } catch (const CommError& error) {
    EXPECT_THAT(error.why(), HasSubstr("did not take part for 0.2 s"));
  }
}

TEST_P(SlowParts, AWaitIsWarnedOfWithRankAndCall) {
  std::mutex mutex;
  std::vector<std::string> told;
  const StallWarning warning{.after = kDeadline / 2, .tell = [&](const std::string& note) {
                               const std::lock_guard lock(mutex);
                               told.push_back(note);
                             }};
  GetParam()(
      3,
      [&](Communicator& peers) {
        peers.warn_of_stalls(&warning);
        peers.barrier();
        if (peers.rank() == 1) std::this_thread::sleep_for(4 * kDeadline);
        peers.barrier();
        peers.warn_of_stalls(nullptr);
      },
      20 * kDeadline);
  EXPECT_THAT(told,
              ElementsAre("rank 0 has waited in barrier #2 for 0.1 s: rank 1 is not there; it "
                          "gives up after 4 s"));
}

// Rank 1 does not join the second sum, so its deadline passes.
TEST_P(SlowParts, ARecorderHasEachCallAndTheWaitThatFailed) {
  std::vector<std::unique_ptr<FlightRecorder>> recorders;
  for (int rank = 0; rank < 3; ++rank) {
    recorders.push_back(std::make_unique<FlightRecorder>(rank, 3, 0));
  }
  const auto body = [&](Communicator& peers) {
    peers.record_in(recorders[static_cast<size_t>(peers.rank())].get());
    Tensor values = Tensor::zeros({8}, Dtype::kF32);
    const AllReduce sum{.values = values, .label = "bucket 0"};
    peers.start_all_reduce(sum)->wait();
    if (peers.rank() == 1) std::this_thread::sleep_for(4 * kDeadline);
    peers.start_all_reduce(sum)->wait();
  };
  EXPECT_THROW(GetParam()(3, body, kDeadline), CommError);
  int waiting = 0;
  for (const auto& recorder : recorders) {
    const FlightState& state = recorder->record().state;
    if (!state.wait || state.wait.number != 2) continue;
    ++waiting;
    EXPECT_EQ(state.open_call.number, 2);
    EXPECT_EQ(state.last_call.text(), "bucket 0");
  }
  EXPECT_GE(waiting, 1);
  const auto& events = recorders[0]->record().events;
  EXPECT_EQ(events[0].number, 1);
  EXPECT_EQ(events[1].number, 1);
  EXPECT_EQ(events[1].phase, FlightEvent::Phase::kLeft);
}

void by_memory(int ranks, const std::function<void(Communicator&)>& body, milliseconds deadline) {
  spawn_ranks(ranks, body, deadline);
}
void by_messages(int ranks, const std::function<void(Communicator&)>& body, milliseconds deadline) {
  testing::spawn_mailbox_ranks(ranks, body, deadline);
}
INSTANTIATE_TEST_SUITE_P(Transports, SlowParts, ::testing::Values(by_memory, by_messages));

}  // namespace
}  // namespace lockstep::comm::wait_limit_test
