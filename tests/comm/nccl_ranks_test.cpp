// What is refused before NCCL is asked.
#include <optional>

#include <gtest/gtest.h>

#include "comm/nccl/api.h"
#include "comm/nccl/ranks.h"
#include "comm/single.h"
#include "comm/thread_communicator.h"

namespace lockstep::comm::nccl::nccl_ranks_test {
namespace {

EnvironmentError refusal(const std::string& soname) {
  try {
    const Api refused(soname);
  } catch (const EnvironmentError& error) {
    return error;
  }
  return EnvironmentError("nothing was refused");
}

#ifdef LOCKSTEP_CUDA
TEST(NcclLibrary, IsMissing) {
  const EnvironmentError error = refusal("libno_such_nccl.so.2");
  EXPECT_STREQ(error.what(), "NCCL 2 cannot be loaded");
  EXPECT_NE(error.why().find("libno_such_nccl.so.2"), std::string::npos) << error.why();
  EXPECT_NE(error.hint().find("through the host"), std::string::npos) << error.hint();
  EXPECT_EQ(error.remedy(), Remedy::kHostExchange);
  EXPECT_EQ(error.code(), ExitCode::kEnvironment);
}

TEST(NcclLibrary, IsNone) {
  const EnvironmentError error = refusal("libz.so.1");
  EXPECT_STREQ(error.what(), "NCCL 2 is not what this build knows");
  EXPECT_EQ(error.why(), "it has no function ncclGetVersion");
}

TEST(NcclLibrary, RealOneIsTakenWhereItIs) {
  std::optional<Api> real;
  try {
    real.emplace();
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.why();
  }
  int version = 0;
  EXPECT_EQ(real->get_version(&version), kSuccess);
  EXPECT_GE(version, version_code(2, 18, 0));
  EXPECT_EQ(real->version().substr(0, 2), "2.");
}
#else
TEST(NcclLibrary, IsOfNoUseWithoutCuda) {
  EXPECT_STREQ(refusal("libnccl.so.2").what(), "this build has no CUDA");
}
#endif

TEST(NcclRanks, NeedAGpuEach) {
  spawn_ranks(3, [](Communicator& peers) {
    const std::string own = "GPU-" + std::to_string(peers.rank());
    EXPECT_NO_THROW(check_devices_differ(peers, own));
    try {
      check_devices_differ(peers, peers.rank() == 0 ? "GPU-0" : "GPU-7");
      ADD_FAILURE() << "nothing was refused";
    } catch (const EnvironmentError& error) {  // on every rank alike
      EXPECT_STREQ(error.what(), "ranks 1 and 2 share a GPU");
      EXPECT_EQ(error.why(), "both have GPU-7; NCCL takes one rank a GPU");
      EXPECT_EQ(error.remedy(), Remedy::kIpcExchange);
    }
  });
  SingleCommunicator alone;
  EXPECT_NO_THROW(check_devices_differ(alone, "GPU-0"));
}

}  // namespace
}  // namespace lockstep::comm::nccl::nccl_ranks_test
