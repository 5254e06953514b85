// Tests loading NCCL: the library is missing, is another library, or is the installed one.
#include <optional>
#include <type_traits>

#include <gtest/gtest.h>

#include "comm/nccl/api.h"

namespace lockstep::comm::nccl::nccl_library_test {
namespace {

EnvironmentError refusal(const std::string& soname) {
  try {
    const Api refused(soname);
  } catch (const EnvironmentError& error) {
    return error;
  }
  return EnvironmentError("nothing was refused");
}

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
  EXPECT_STREQ(error.what(), "NCCL 2 lacks a function that this build needs");
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
  EXPECT_EQ(real->get_version(&version), ncclSuccess);
  EXPECT_GE(version, NCCL_VERSION(2, 18, 0));
  EXPECT_EQ(real->version().substr(0, 2), "2.");
}

// NCCL's threads may outlive static objects.
TEST(NcclLibrary, NcclIsNeverClosed) {
  EXPECT_TRUE(std::is_trivially_destructible_v<Api>);
}

}  // namespace
}  // namespace lockstep::comm::nccl::nccl_library_test
