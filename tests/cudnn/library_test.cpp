// A cuDNN that cannot be used is refused in three lines.
#include <cstdlib>

#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/support/cudnn/api.h"

namespace lockstep::kernels::cudnn::library_test {
namespace {

constexpr const char* kFake = "libfake_cudnn.so";

EnvironmentError refusal(const std::string& soname) {
  try {
    const Api refused(soname);
  } catch (const EnvironmentError& error) {
    return error;
  }
  return EnvironmentError("nothing was refused");
}

void pretend(const char* version, const char* cuda) {
  setenv("FAKE_CUDNN_VERSION", version, 1);
  setenv("FAKE_CUDNN_CUDA", cuda, 1);
}

TEST(CudnnLibrary, IsMissing) {
  const EnvironmentError error = refusal("libno_such_cudnn.so.9");
  EXPECT_STREQ(error.what(), "cuDNN 9 cannot be loaded");
  EXPECT_NE(error.why().find("libno_such_cudnn.so.9"), std::string::npos) << error.why();
  EXPECT_NE(error.hint().find("LD_LIBRARY_PATH"), std::string::npos) << error.hint();
  EXPECT_EQ(error.code(), ExitCode::kEnvironment);
}

TEST(CudnnLibrary, IsTooOld) {
  pretend("90701", "13000");
  const EnvironmentError error = refusal(kFake);
  EXPECT_STREQ(error.what(), "cuDNN is too old");
  EXPECT_EQ(error.why(), "it is 9.7.1, convolutions need 9.11.0 or newer");
}

TEST(CudnnLibrary, IsForAnotherCuda) {
  pretend("91900", "11080");
  const EnvironmentError error = refusal(kFake);
  EXPECT_STREQ(error.what(), "cuDNN is for another CUDA");
  EXPECT_NE(error.why().find("built for CUDA 11"), std::string::npos) << error.why();
}

TEST(CudnnLibrary, IsNone) {
  const EnvironmentError error = refusal("libz.so.1");
  EXPECT_STREQ(error.what(), "cuDNN 9 is not what this build knows");
  EXPECT_EQ(error.why(), "it has no function cudnnGetVersion");
}

TEST(CudnnLibrary, RealOneIsTaken) {
  EXPECT_GE(api().get_version(), 91100U);
}

}  // namespace
}  // namespace lockstep::kernels::cudnn::library_test
