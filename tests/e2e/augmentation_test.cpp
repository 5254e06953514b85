// Random changes to training images in whole runs: the bits are the same on any number of ranks and
// after a resume.
#include "tests/e2e/photo_runs.h"
#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"

namespace lockstep::testing::augmentation_test {
namespace {

// Three epochs of three steps. The last step of an epoch is short.
class AugmentedRuns : public ::testing::TestWithParam<Arguments> {
 protected:
  void SetUp() override { write_small_mnist(dir_ / "mnist", 90, 40); }

  void run(int ranks, const std::string& name, const Arguments& flags, const Arguments& more = {}) {
    Arguments line = {"train_convnet", (dir_ / "mnist").string(), "--dataset", "mnist"};
    line.insert(line.end(), {"--epochs", "3", "--global-batch-size", "32", "--print-freq", "1"});
    line.insert(line.end(), {"--shards", "8", "--bn-groups", "2", "-o", (dir_ / name).string()});
    line.insert(line.end(), flags.begin(), flags.end());
    line.insert(line.end(), more.begin(), more.end());
    const ProgramResult result = run_ranks(ranks, line);
    ASSERT_EQ(result.exit_code, 0) << said(result);
  }
  nlohmann::json digest(const std::string& name) const {
    return read_json(dir_ / name / "run.json").at("digest");
  }

  const TempDir dir_;
};

TEST_P(AugmentedRuns, HaveTheSameBitsOnOneTwoAndFourRanks) {
  run(1, "1", GetParam());
  for (const int ranks : {2, 4}) {
    run(ranks, std::to_string(ranks), GetParam(), {"-j", "0"});
    expect_same_bits(dir_ / "1", dir_ / std::to_string(ranks));
  }
  run(1, "plain", {});
  EXPECT_NE(digest("plain"), digest("1")) << "the flags change nothing";
}

// Stopped in the middle of the second epoch, in which the images are mirrored the other way.
TEST_P(AugmentedRuns, GoOnWithinAnEpochOnTwoRanks) {
  run(1, "whole", GetParam());
  run(1, "parts", GetParam(), {"--max-steps", "5"});
  run(2, "parts", GetParam(), {"--resume", "auto"});
  EXPECT_EQ(digest("parts"), digest("whole"));
}
INSTANTIATE_TEST_SUITE_P(
    Flags,
    AugmentedRuns,
    ::testing::Values(Arguments{"--flip", "alternating"},
                      Arguments{"--crop-pad", "2"},
                      Arguments{
                          "--flip", "random", "--crop-pad", "3", "--crop-pad-mode", "reflect"},
                      Arguments{"--random-erase", "0.5"},
                      Arguments{"--cutout", "12"},
                      Arguments{"--cutmix", "1"},
                      Arguments{"--aug-repeats", "3", "--flip", "random"},
                      Arguments{"--cutmix-alpha", "1", "--mixup", "0.4", "--random-erase", "1"}));

// Two epochs of two steps. The second process begins in the middle of the second epoch.
TEST(AugmentedPhotos, HaveTheSameBitsOnTwoRanksAndAfterAResume) {
  const TempDir dir;
  write_image_folders(dir / "photos", 8);
  std::string said_last;
  const auto run = [&](int ranks, const std::string& name, const Arguments& more) {
    Arguments line = {"--auto-augment",
                      "ta_wide",
                      "--flip",
                      "alternating",
                      "--random-erase",
                      "0.5",
                      "--aug-repeats",
                      "2",
                      "--drop-path",
                      "0.5"};
    line.insert(line.end(), {"--max-steps", "4", "-p", "1", "--epochs", "2"});
    line.insert(line.end(), more.begin(), more.end());
    const ProgramResult result = run_ranks(ranks, resnet20(dir / "photos", dir / name, line));
    ASSERT_EQ(result.exit_code, 0) << said(result);
    said_last = result.err;
  };
  run(1, "one", {});
  run(2, "two", {"-j", "0", "--cache-mb", "10"});
  expect_same_bits(dir / "one", dir / "two");
  run(1, "parts", {"--max-steps", "3"});
  run(2, "parts", {"--resume", "auto"});
  EXPECT_EQ(read_json(dir / "parts" / "run.json").at("digest"),
            read_json(dir / "one" / "run.json").at("digest"));
  EXPECT_EQ(count_of(said_last, "in the checkpoint's run"), 0) << said_last;
  run(1, "parts", {"--resume", "auto", "--epochs", "3", "--max-steps", "5", "--flip", "random"});
  EXPECT_EQ(count_of(said_last, "flip is random, was alternating in the checkpoint's run"), 1)
      << said_last;
  const ProgramResult other = run_ranks(
      1, resnet20(dir / "photos", dir / "parts", {"--resume", "auto", "--aug-repeats", "3"}));
  EXPECT_EQ(count_of(other.err, "--aug-repeats is 3, the checkpoint's run has 2"), 1) << other.err;
  run(1, "rand", {"--auto-augment", "rand-m7-mstd0.5-inc1"});
  run(2, "rand2", {"--auto-augment", "rand-m7-mstd0.5-inc1"});
  expect_same_bits(dir / "rand", dir / "rand2");
  run(1, "plain", {"--auto-augment", "none"});
  EXPECT_NE(read_json(dir / "plain" / "run.json").at("digest"),
            read_json(dir / "rand" / "run.json").at("digest"));
  EXPECT_NE(read_json(dir / "plain" / "run.json").at("digest"),
            read_json(dir / "one" / "run.json").at("digest"));
}

// Uses all techniques of ResNet Strikes Back at once.
TEST(AugmentedPhotos, HaveTheSameBitsWithLambBinaryLossesAndAllChanges) {
  const TempDir dir;
  write_image_folders(dir / "photos", 8);
  const auto run = [&](int ranks, const std::string& name, const Arguments& more) {
    Arguments line = {"--opt", "lamb", "--lr", "5e-3", "--wd", "0.02", "--no-bias-decay"};
    line.insert(line.end(), {"--loss", "bce", "--bce-target-thresh", "0.2", "--mixup", "0.1"});
    line.insert(line.end(), {"--cutmix", "1", "--label-smoothing", "0.1", "--drop-path", "0.1"});
    line.insert(line.end(), {"--aug-repeats", "3", "--auto-augment", "rand-m7-mstd0.5-inc1"});
    line.insert(line.end(), {"--max-steps", "4", "-p", "1", "--epochs", "2"});
    line.insert(line.end(), more.begin(), more.end());
    const ProgramResult result = run_ranks(ranks, resnet20(dir / "photos", dir / name, line));
    ASSERT_EQ(result.exit_code, 0) << said(result);
  };
  run(1, "one", {});
  run(2, "two", {});
  expect_same_bits(dir / "one", dir / "two");
  run(1, "parts", {"--max-steps", "3"});
  run(2, "parts", {"--resume", "auto"});
  EXPECT_EQ(read_json(dir / "parts" / "run.json").at("digest"),
            read_json(dir / "one" / "run.json").at("digest"));
}

}  // namespace
}  // namespace lockstep::testing::augmentation_test
