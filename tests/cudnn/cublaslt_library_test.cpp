// A cuBLASLt that cannot be used is refused in three lines; one that is used stays open.
#include <type_traits>

#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/support/cublaslt/api.h"

namespace lockstep::kernels::cublaslt::cublaslt_library_test {
namespace {

TEST(CublasltLibrary, IsNone) {
  try {
    const Api refused("libz.so.1");
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "cuBLASLt lacks a function that this build needs");
    EXPECT_EQ(error.why(), "it has no function cublasLtGetVersion");
  }
}

TEST(CublasltStaysOpen, CublasltIsNeverClosed) {
  EXPECT_TRUE(std::is_trivially_destructible_v<Api>);
}

}  // namespace
}  // namespace lockstep::kernels::cublaslt::cublaslt_library_test
