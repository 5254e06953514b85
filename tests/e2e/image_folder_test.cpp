// Training on class folders of photos.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/e2e/training_runs.h"
#include "tests/support/image_files.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// One step of eight photos.
Arguments resnet(const fs::path& photos, const fs::path& run, const Arguments& more = {}) {
  Arguments line = {"train_resnet", photos.string(), "-a", "resnet18", "-o", run.string()};
  line.insert(line.end(), {"--global-batch-size", "8", "--shards", "4", "--bn-groups", "2"});
  line.insert(line.end(), {"--max-steps", "1", "--lr", "0.01", "-p", "1"});
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

TEST(ImageFolderRuns, HaveTheSameBitsOnOtherRanks) {
  const TempDir dir;
  write_image_folders(dir / "photos", 4);
  write_file(dir / "photos/train/ants/0.jpg", {1, 2, 3});
  const ProgramResult one = run_program(resnet(dir / "photos", dir / "one"));
  ASSERT_EQ(one.exit_code, 0) << said(one);
  EXPECT_THAT(one.out, HasSubstr("data imagefolder (8/8)"));
  EXPECT_EQ(count_of(one.err, "skipped ants/0.jpg: it is neither JPEG nor PNG"), 1) << one.err;
  for (const int ranks : {2, 4}) {
    const fs::path run = dir / std::to_string(ranks);
    const ProgramResult several =
        run_ranks(ranks, resnet(dir / "photos", run, {"--workers", std::to_string(ranks)}));
    ASSERT_EQ(several.exit_code, 0) << said(several);
    expect_same_bits(dir / "one", run);
  }
}

TEST(ImageFolderRuns, StartFromWeightsOfOtherClasses) {
  const TempDir dir;
  write_image_folders(dir / "photos", 4);
  const ProgramResult first = run_program(resnet(dir / "photos", dir / "first"));
  ASSERT_EQ(first.exit_code, 0) << said(first);
  for (const char* split : {"train", "val"}) {
    write_file(dir / "photos" / split / "crickets/1.png", image_file("png_rgb"));
  }
  const ProgramResult second =
      run_program(resnet(dir / "photos", dir / "second", {"--pretrained", weights(dir / "first")}));
  EXPECT_EQ(second.exit_code, 0) << said(second);
}

TEST(ImageFolderRuns, AreRefusedInThreeLines) {
  const TempDir dir;
  write_image_folders(dir / "photos", 1);
  fs::remove_all(dir / "photos/val/bees");
  const ProgramResult one_class = run_program(resnet(dir / "photos", dir / "run"));
  EXPECT_EQ(one_class.exit_code, 3);
  EXPECT_THAT(one_class.err, HasSubstr("val has only one class folder"));
  EXPECT_THAT(one_class.err, HasSubstr("\n  why: "));
  EXPECT_THAT(one_class.err, HasSubstr("\n  try: "));
  EXPECT_FALSE(fs::exists(dir / "run"));
}

TEST(BenchLoader, MeasuresAFolder) {
  const TempDir dir;
  write_image_folders(dir / "photos", 3);
  const std::string train = (dir / "photos/train").string();
  const ProgramResult result = run_program({"bench_loader", "--data", train, "--passes", "2"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const nlohmann::json report = nlohmann::json::parse(result.out);
  EXPECT_GT(report.at("images_per_s").get<double>(), 0);
  EXPECT_EQ(report.at("workers").get<int>(), 2);
  const ProgramResult nothing = run_program({"bench_loader"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("--data is missing"));
}

}  // namespace
}  // namespace lockstep::testing
