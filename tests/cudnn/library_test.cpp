// A cuDNN that cannot be used is refused in three lines; every cuDNN 9 can be.
#include <cstdlib>
#include <type_traits>

#include <dlfcn.h>
#include <fmt/core.h>
#include <gmock/gmock.h>

#include "core/error.h"
#include "kernels/support/cudnn/api.h"
#include "tests/support/run_program.h"

namespace lockstep::kernels::cudnn::library_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFake = "libfake_cudnn.so";

std::string this_cuda() {
  return fmt::format("{}", api().get_cudart_version());
}

EnvironmentError refusal(const std::string& soname) {
  try {
    const Api refused(soname);
  } catch (const EnvironmentError& error) {
    return error;
  }
  return EnvironmentError("nothing was refused");
}

void pretend(const std::string& version, const std::string& cuda) {
  setenv("FAKE_CUDNN_VERSION", version.c_str(), 1);
  setenv("FAKE_CUDNN_CUDA", cuda.c_str(), 1);
}

TEST(CudnnLibrary, IsMissing) {
  const EnvironmentError error = refusal("libno_such_cudnn.so.9");
  EXPECT_STREQ(error.what(), "cuDNN 9 cannot be loaded");
  EXPECT_NE(error.why().find("libno_such_cudnn.so.9"), std::string::npos) << error.why();
  EXPECT_NE(error.hint().find("LD_LIBRARY_PATH"), std::string::npos) << error.hint();
  EXPECT_EQ(error.code(), ExitCode::kEnvironment);
}

TEST(CudnnLibrary, IsForAnotherCuda) {
  pretend("91900", "11080");
  const EnvironmentError error = refusal(kFake);
  EXPECT_STREQ(error.what(), "cuDNN is for another CUDA");
  EXPECT_NE(error.why().find("built for CUDA 11"), std::string::npos) << error.why();
}

TEST(CudnnLibrary, IsNone) {
  const EnvironmentError error = refusal("libz.so.1");
  EXPECT_STREQ(error.what(), "cuDNN 9 lacks a function that this build needs");
  EXPECT_EQ(error.why(), "it has no function cudnnGetVersion");
}

TEST(CudnnLibrary, RealOneIsTaken) {
  EXPECT_GE(api().get_version(), 90000U);
}

TEST(CudnnVersions, Cudnn90IsTaken) {
  pretend("90000", this_cuda());
  EXPECT_EQ(Api(kFake).version(), "9.0.0");
}

// The program finds a cuDNN that the test's folder holds under the real one's name.
TEST(CudnnVersions, PlansWithoutACardSayWhichCudnnTheyNeed) {
  const std::string folder = lockstep::testing::path_of_program("../tests/cudnn/old");
  const lockstep::testing::ProgramOptions old_cudnn{
      .environment = {{"LD_LIBRARY_PATH", folder},
                      {"FAKE_CUDNN_VERSION", "91002"},
                      {"FAKE_CUDNN_CUDA", this_cuda()}}};
  const auto said = lockstep::testing::run_program(
      {"lockstep", "plan", "--arch=convnet", "--batch-size=100", "--gpu=h200"}, old_cudnn);
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out,
              HasSubstr("no engines: cuDNN is too old (it is 9.10.2, plans for a GPU that is not "
                        "here need 9.11.0 or newer)\n"));
}

TEST(CudnnVersions, AnOldCudnnIsRefusedInThreeLines) {
  pretend("90000", this_cuda());
  const Api api(kFake);
  EXPECT_NO_THROW(api.require(90000, "these"));
  try {
    api.require(91100, "these");
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "cuDNN is too old");
    EXPECT_EQ(error.why(), "it is 9.0.0, these need 9.11.0 or newer");
    EXPECT_EQ(error.hint(), "a newer cuDNN 9, or build with -DLOCKSTEP_CUDNN=OFF");
  }
}

TEST(CudnnVersions, CudnnStaysOpen) {
  pretend("90000", this_cuda());
  {
    const Api used(kFake);
  }
  EXPECT_NE(dlopen(kFake, RTLD_NOW | RTLD_NOLOAD), nullptr);
  EXPECT_TRUE(std::is_trivially_destructible_v<Api>);  // so api() serves static objects to the end
}

}  // namespace
}  // namespace lockstep::kernels::cudnn::library_test
