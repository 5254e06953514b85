#include "comm/device_exchange.h"

#include <string>

#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "comm/single.h"

namespace lockstep::comm::device_exchange_test {
namespace {

TEST(DeviceExchange, OverNcclNeedsAGpuEach) {
  spawn_ranks(3, [](Communicator& peers) {
    const std::string own = "GPU-" + std::to_string(peers.rank());
    EXPECT_NO_THROW(check_devices_differ(peers, own));
    try {
      check_devices_differ(peers, peers.rank() == 0 ? "GPU-0" : "GPU-7");
      ADD_FAILURE() << "nothing was refused";
    } catch (const EnvironmentError& error) {  // the same on every rank
      EXPECT_STREQ(error.what(), "ranks 1 and 2 share a GPU");
      EXPECT_EQ(error.why(), "both have GPU-7; NCCL takes one rank per GPU");
      EXPECT_EQ(error.remedy(), Remedy::kIpcExchange);
    }
  });
  SingleCommunicator alone;
  EXPECT_NO_THROW(check_devices_differ(alone, "GPU-0"));
}

}  // namespace
}  // namespace lockstep::comm::device_exchange_test
