// Waits for ranks that are busy for long, such as with a slow disk.
#include "comm/wait_limit.h"

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "comm/thread_communicator.h"
#include "tests/support/mailbox_ranks.h"

namespace lockstep::comm::wait_limit_test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr milliseconds kDeadline{100};

using Spawn = void (*)(int, const std::function<void(Communicator&)>&, milliseconds);

class SlowParts : public ::testing::TestWithParam<Spawn> {
 protected:
  // Rank 1 of three is busy for so long. Returns what was told, or the error's reason.
  std::vector<std::string> spawn(milliseconds busy, std::chrono::seconds limit) {
    std::mutex mutex;
    std::vector<std::string> told;
    const auto body = [&](Communicator& peers) {
      const SlowPart part{.doing = "saving", .limit = limit, .tell = [&](const std::string& note) {
                            const std::lock_guard lock(mutex);
                            told.push_back(note);
                          }};
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
};

TEST_P(SlowParts, AttackA2_ASlowRankIsWaitedForAndNamed) {
  EXPECT_THAT(spawn(milliseconds(400), std::chrono::seconds(60)),
              ElementsAre("rank 1 is still saving; the other ranks wait for 60 s at most"));
  EXPECT_THAT(spawn(milliseconds(0), std::chrono::seconds(60)), ElementsAre());
}

TEST_P(SlowParts, AttackA2_TheirLimitHasAMessageOfItsOwn) {
  EXPECT_THAT(spawn(milliseconds(1500), std::chrono::seconds(1)),
              ElementsAre("rank 1 is still saving after 1 s"));
}

TEST_P(SlowParts, AttackA2_OtherWaitsKeepTheirDeadline) {
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
    EXPECT_THAT(error.why(), HasSubstr("did not take part for 0.1 s"));
  }
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
