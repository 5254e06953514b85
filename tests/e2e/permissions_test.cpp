// Files and folders that the user may not read, write or enter.
#include <gmock/gmock.h>

#include "tests/e2e/photo_runs.h"
#include "tests/support/file_mode.h"

namespace lockstep::testing::permissions_test {
namespace {

using ::testing::HasSubstr;

class Permissions : public ::testing::Test {
 protected:
  void SetUp() override {
    write_text(dir_ / "secret", "text");
    const FileMode none(dir_ / "secret", 0);
    const ProgramResult cat = run_program({"cat", (dir_ / "secret").string()}, kBound);
    if (cat.exit_code == 0) GTEST_SKIP() << "this process may not give up root's rights";
  }

  // Expects one error of three lines.
  void expect_refused(const ProgramResult& result, int exit_code, const std::string& what) {
    EXPECT_EQ(result.exit_code, exit_code) << said(result);
    EXPECT_EQ(count_of(result.err, "lockstep: error: "), 1) << result.err;
    EXPECT_EQ(count_of(result.err, "\n  try: "), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(what));
    EXPECT_THAT(result.err, HasSubstr("Permission denied\n  try: "));
  }

  const ProgramOptions kBound{.respects_modes = true};
  const TempDir dir_;
};

TEST_F(Permissions, APhotoThatMayNotBeReadIsSkipped) {
  write_image_folders(dir_ / "photos", 4);
  const FileMode none(dir_ / "photos/train/ants/3.jpg", 0);
  for (const int ranks : {1, 2}) {
    const auto run = dir_ / std::to_string(ranks);
    const ProgramResult result = run_ranks(ranks, resnet20(dir_ / "photos", run, {}), kBound);
    ASSERT_EQ(result.exit_code, 0) << said(result);
    ASSERT_EQ(skips(result.err).size(), 1U) << result.err;
    EXPECT_THAT(skips(result.err)[0],
                HasSubstr("skipped ants/3.jpg: the file cannot be opened: Permission denied; "));
    EXPECT_EQ(learning_curve(run), learning_curve(dir_ / "1"));
  }
}

TEST_F(Permissions, FoldersOfPhotosAreRefused) {
  write_image_folders(dir_ / "photos", 1);
  write_file(dir_ / "photos/val/bees/deeper/1.jpg", image_file("jpeg_gray"));
  for (const char* folder :
       {"photos", "photos/train", "photos/train/ants", "photos/val/bees/deeper"}) {
    SCOPED_TRACE(folder);
    const FileMode none(dir_ / folder, 0);
    expect_refused(run_ranks(2, resnet20(dir_ / "photos", dir_ / "run", {}), kBound),
                   3,
                   "the folder " + (dir_ / folder).string() + " cannot be read\n");
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
}

TEST_F(Permissions, FilesOfDataSetsAreRefused) {
  const std::string idx = "mnist/MNIST/raw/train-images-idx3-ubyte";
  const std::string bin = "cifar/cifar-10-batches-bin/data_batch_1.bin";
  for (const char* name : {"train-images-idx3-ubyte",
                           "train-labels-idx1-ubyte",
                           "t10k-images-idx3-ubyte",
                           "t10k-labels-idx1-ubyte"}) {
    write_file(dir_ / "mnist/MNIST/raw" / name, {0});
  }
  for (const char* name : {"data_batch_1.bin",
                           "data_batch_2.bin",
                           "data_batch_3.bin",
                           "data_batch_4.bin",
                           "data_batch_5.bin",
                           "test_batch.bin"}) {
    write_file(dir_ / "cifar/cifar-10-batches-bin" / name, {0});
  }
  for (const std::string& path :
       {idx, bin, std::string("mnist/MNIST/raw"), std::string("cifar/cifar-10-batches-bin")}) {
    SCOPED_TRACE(path);
    const FileMode none(dir_ / path, 0);
    const bool gray = path.starts_with("mnist");
    const auto data = (dir_ / (gray ? "mnist" : "cifar")).string();
    expect_refused(run_program({gray ? "train_convnet" : "train_resnet", data}, kBound),
                   3,
                   path.ends_with("1.bin") || path.ends_with("ubyte")
                       ? "cannot open " + (dir_ / path).string()
                       : "the folder " + (dir_ / path).string() + " cannot be read\n");
  }
}

TEST_F(Permissions, OutputIsRefusedBeforeTraining) {
  const auto step = [&](const std::string& run, const Arguments& more) {
    Arguments line = {"--max-steps", "1"};
    line.insert(line.end(), more.begin(), more.end());
    return run_ranks(2, convnet(dir_ / run, line), kBound);
  };
  std::filesystem::create_directories(dir_ / "folder");
  {
    const FileMode read(dir_ / "folder", 0555);
    expect_refused(step("folder", {}), 5, (dir_ / "folder").string());
    expect_refused(step("folder/run", {}), 5, (dir_ / "folder/run").string());
  }
  ASSERT_EQ(step("run", {}).exit_code, 0);
  {
    const FileMode read(dir_ / "run", 0555);
    const std::string run = (dir_ / "run").string();
    expect_refused(run_program({"lockstep", "report", run}, kBound), 5, "report.html");
    EXPECT_EQ(run_program({"lockstep", "watch", run}, kBound).exit_code, 0);
  }
  for (const unsigned mode : {0555U, 0U}) {
    const FileMode changed(dir_ / "run/checkpoints", mode);
    const std::string path = (dir_ / "run/checkpoints").string();
    expect_refused(step("run", {"--max-steps", "2", "--resume", "auto"}), 5, path);
    expect_refused(step("run", {"--overwrite"}), 5, path);
  }
}

}  // namespace
}  // namespace lockstep::testing::permissions_test
