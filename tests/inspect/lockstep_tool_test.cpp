#include "inspect/cli/lockstep_tool.h"

#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/digest.h"
#include "core/safetensors.h"
#include "inspect/weights/checkpoint_reports.h"
#include "tests/support/random_tensor.h"
#include "tests/support/temp_dir.h"

namespace lockstep::trainers::lockstep_tool_test {
namespace {

using testing::random_tensor;
using testing::TempDir;
using testing::write_text;

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome lockstep(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"lockstep"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_lockstep_tool(static_cast<int>(argv.size()), argv.data(), out, err);
  return {code, out.str(), err.str()};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Safetensors checkpoint(uint64_t seed) {
  return {.tensors = {{"fc.weight", random_tensor({3, 4}, seed)}, {"bias", random_tensor({2}, 9)}},
          .metadata = {{"seed", std::to_string(seed)}}};
}

TEST(LockstepDiff, ExitsZeroForTheSameBitsOnly) {
  const TempDir dir;
  const std::string a = dir / "a";
  const std::string b = dir / "b";
  write_safetensors(a, checkpoint(1));
  write_safetensors(b, checkpoint(1));
  const Outcome same = lockstep({"diff", a, b});
  EXPECT_EQ(same.code, 0);
  EXPECT_EQ(same.out, "same bits in all 2 tensors\n");
  Safetensors other = checkpoint(1);
  other.tensors.at("fc.weight").data<float>()[7] += 1e-6F;
  write_safetensors(b, other);
  const Outcome different = lockstep({"diff", a, b});
  EXPECT_EQ(different.code, 1);
  EXPECT_TRUE(contains(different.out,
                       "1 of 2 tensors differ\n  fc.weight: 1 of 12 elements differ, "
                       "first at [1,3]: "))
      << different.out;
  EXPECT_EQ(different.err, "");
}

TEST(LockstepDiff, MetadataDoesNotCount) {
  const TempDir dir;
  Safetensors other = checkpoint(1);
  write_safetensors(dir / "a", other);
  other.metadata["seed"] = "2";
  write_safetensors(dir / "b", other);
  const Outcome outcome = lockstep({"diff", dir / "a", dir / "b"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.out, R"(seed: "1" and "2")")) << outcome.out;
}

TEST(LockstepDiff, ARunStandsForItsNewestCheckpoint) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "run/checkpoints");
  write_safetensors(dir / "run/checkpoints/step0000001.safetensors", checkpoint(1));
  write_safetensors(dir / "run/checkpoints/step0000002.safetensors", checkpoint(2));
  std::filesystem::create_symlink("step0000002.safetensors",
                                  dir / "run/checkpoints/last.safetensors");
  write_safetensors(dir / "a", checkpoint(2));
  const Outcome same = lockstep({"diff", dir / "run", dir / "a"});
  EXPECT_EQ(same.code, 0) << same.err;
  write_safetensors(dir / "a", checkpoint(1));
  EXPECT_EQ(lockstep({"diff", dir / "a", dir / "run"}).code, 1);
  EXPECT_EQ(lockstep({"diff", dir / "a", dir / "run/checkpoints"}).code, 4);
}

TEST(LockstepDiff, UnreadableFilesExitFour) {
  const TempDir dir;
  write_safetensors(dir / "good", checkpoint(1));
  write_text(dir / "bad", "not a checkpoint");
  for (const char* bad : {"bad", "missing"}) {
    for (const bool first : {true, false}) {
      const std::string a = dir / (first ? bad : "good");
      const std::string b = dir / (first ? "good" : bad);
      const Outcome outcome = lockstep({"diff", a, b});
      EXPECT_EQ(outcome.code, 4);
      EXPECT_EQ(outcome.out, "");
      EXPECT_TRUE(contains(outcome.err, "lockstep: error: cannot ")) << outcome.err;
      EXPECT_TRUE(contains(outcome.err, bad)) << outcome.err;
      EXPECT_TRUE(contains(outcome.err, "\n  why: ")) << outcome.err;
      EXPECT_TRUE(contains(outcome.err, "\n  try: ")) << outcome.err;
    }
  }
}

TEST(LockstepTool, WrongUseExitsTwoInThreeLines) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"diff"},
                                             {"diff", "a"},
                                             {"diff", "a", "b", "c"},
                                             {"nonsense"},
                                             {"inspect"},
                                             {"diff", "a", "b", "--limit", "-1"},
                                             {"--nonsense"}}) {
    const Outcome outcome = lockstep(arguments);
    EXPECT_EQ(outcome.code, 2) << ::testing::PrintToString(arguments);
    EXPECT_TRUE(contains(outcome.err, "lockstep: error: ")) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "\n  why: ")) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "\n  try: ")) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 3) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(LockstepTool, SuggestsTheNearestCommand) {
  const Outcome near = lockstep({"difff", "a", "b"});
  EXPECT_TRUE(contains(near.err, "lockstep has no command difff\n")) << near.err;
  EXPECT_TRUE(contains(near.err, "try: did you mean lockstep diff?\n")) << near.err;
  EXPECT_TRUE(contains(lockstep({"scale_report"}).err, "mean lockstep scale-report?"));
  const Outcome far = lockstep({"frobnicate"});
  EXPECT_TRUE(contains(far.err, "its commands are diff, inspect, export, plan, ")) << far.err;
  EXPECT_TRUE(contains(far.err, "try: lockstep --help\n")) << far.err;
}

TEST(LockstepTool, ScaleReportPrintsATable) {
  const Outcome outcome =
      lockstep({"scale-report", "4:50", "2:100", "--images", "1000", "--epochs", "2"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(
      contains(outcome.out, "     4         50         40           10     2.00       100%\n"))
      << outcome.out;
  EXPECT_EQ(lockstep({"scale-report", "2"}).code, 2);
  EXPECT_EQ(lockstep({"scale-report", "2:100", "--epochs", "nan"}).code, 2);
}

TEST(LockstepTool, HelpAndVersionSucceed) {
  EXPECT_EQ(lockstep({"--help"}).code, 0);
  EXPECT_TRUE(contains(lockstep({"--help"}).out, "diff"));
  EXPECT_TRUE(contains(lockstep({"diff", "--help"}).out, "same bits"));
  const Outcome version = lockstep({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.starts_with("lockstep ")) << version.out;
}

TEST(LockstepInspect, ListsTensorsAndMetadata) {
  const TempDir dir;
  Tensor image = Tensor::zeros({1, 2, 1, 2}, Dtype::kU8);
  const std::vector<uint8_t> channels_last = {1, 3, 2, 4};
  std::copy(channels_last.begin(), channels_last.end(), image.data<uint8_t>());
  write_safetensors(dir / "a",
                    {.tensors = {{"image", to_row_major(image)}},
                     .metadata = {{"text",
                                   "a\x1b"
                                   "b"}}});
  const Outcome outcome = lockstep({"inspect", dir / "a"});
  EXPECT_EQ(outcome.code, 0);
  std::string squeezed;
  for (const char c : outcome.out) {
    if (c != ' ' || squeezed.back() != ' ') squeezed += c;
  }
  EXPECT_EQ(squeezed,
            "name dtype shape min max mean nonfinite digest\n"
            "image u8 (1,2,1,2) 1 4 2.5 0 " +
                to_hex(digest_of(image)) +
                "\n"
                "1 tensors, 4 elements, 4 bytes, digest " +
                to_hex(digest_of({{"image", image}})) +
                "\n"
                "metadata text = a\\x1bb\n");
}

TEST(TensorStatistics, LeavesOutWhatIsNotFinite) {
  Tensor tensor = Tensor::zeros({4}, Dtype::kF32);
  tensor.data<float>()[0] = HUGE_VALF;
  tensor.data<float>()[1] = NAN;
  tensor.data<float>()[2] = -3;
  const TensorStatistics got = statistics(tensor);
  EXPECT_EQ(got.min, -3);
  EXPECT_EQ(got.max, 0);
  EXPECT_EQ(got.mean, -1.5);
  EXPECT_EQ(got.nonfinite, 2);
  const TensorStatistics none = statistics(Tensor::zeros({0}, Dtype::kF16));
  EXPECT_EQ(none.min, 0);
  EXPECT_EQ(none.mean, 0);
}

}  // namespace
}  // namespace lockstep::trainers::lockstep_tool_test
