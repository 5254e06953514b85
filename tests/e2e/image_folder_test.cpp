// Training on class folders of photos.
#include <filesystem>
#include <set>

#include <gmock/gmock.h>

#include "tests/e2e/photo_runs.h"

namespace lockstep::testing::image_folder_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

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

TEST(ImageFolderRuns, SqueezeAndBlurWithTheSameBitsOnOtherRanks) {
  const TempDir dir;
  write_image_folders(dir / "photos", 4);
  const auto line = [&](const fs::path& run) {
    return resnet(dir / "photos", run, {"--blur-pool"}, "seresnet50");
  };
  const ProgramResult one = run_program(line(dir / "one"));
  ASSERT_EQ(one.exit_code, 0) << said(one);
  for (const int ranks : {2, 4}) {
    const fs::path run = dir / std::to_string(ranks);
    const ProgramResult several = run_ranks(ranks, line(run));
    ASSERT_EQ(several.exit_code, 0) << said(several);
    expect_same_bits(dir / "one", run);
  }
}

TEST(ImageFolderRuns, TestImagesThatAreTooSmallAreRefusedBeforeTraining) {
  const TempDir dir;
  write_image_folders(dir / "photos", 4);
  const ProgramResult result = run_program(
      resnet(dir / "photos",
             dir / "run",
             {"--train-crop-size", "96", "--val-crop-size", "32", "--val-resize-size", "32"},
             "alexnet"));
  EXPECT_EQ(result.exit_code, 2) << said(result);
  EXPECT_THAT(result.err, HasSubstr("the data set's images have 32x32 pixels"));
  EXPECT_THAT(result.err, HasSubstr("--val-crop-size 224"));
  EXPECT_EQ(count_of(result.out, "Epoch: "), 0);
}

// Epochs of one step, first with images of 32 pixels and then of 64.
TEST(ImageFolderRuns, GrowWithTheSameBitsOnOtherRanksAndResumed) {
  const TempDir dir;
  write_image_folders(dir / "photos", 4);
  const auto line = [&](const fs::path& run, const Arguments& more) {
    Arguments flags = {"--train-crop-size", "64", "--res-from", "32", "--res-epochs", "1:2"};
    flags.insert(flags.end(), {"--epochs", "3"});
    flags.insert(flags.end(), more.begin(), more.end());
    return resnet20(dir / "photos", run, flags);
  };
  const ProgramResult one = run_program(line(dir / "one", {"--max-steps", "3"}));
  ASSERT_EQ(one.exit_code, 0) << said(one);
  EXPECT_THAT(one.out, HasSubstr("epoch 0: training images of 32x32\n"));
  EXPECT_THAT(one.out, HasSubstr("epoch 2: training images of 64x64\n"));
  EXPECT_THAT(one.out, Not(HasSubstr("epoch 1: training images")));
  for (const int ranks : {2, 4}) {
    const fs::path run = dir / std::to_string(ranks);
    const ProgramResult several =
        run_ranks(ranks, line(run, {"--max-steps", "3", "-j", std::to_string(ranks % 4)}));
    ASSERT_EQ(several.exit_code, 0) << said(several);
    expect_same_bits(dir / "one", run);
  }
  for (const char* steps : {"1", "2", "3"}) {
    const ProgramResult part =
        run_program(line(dir / "parts", {"--max-steps", steps, "--resume", "auto"}));
    ASSERT_EQ(part.exit_code, 0) << said(part);
  }
  expect_same_bits(dir / "one", dir / "parts");
  const ProgramResult other = run_program(
      line(dir / "parts", {"--max-steps", "3", "--resume", "auto", "--res-from", "48"}));
  EXPECT_EQ(other.exit_code, 4) << said(other);
  const ProgramResult dry = run_program(line(dir / "dry", {"--max-steps", "3", "--lr-dry-run"}));
  EXPECT_THAT(dry.out, HasSubstr("epoch 1 step 2 lr 0.01 images 32x32\n")) << said(dry);
  EXPECT_THAT(dry.out, HasSubstr("epoch 2 step 3 lr 0.01 images 64x64\n")) << said(dry);
}

TEST(ImageFolderRuns, DrawInterpolationsWithTheSameBitsOnOtherRanksAndResumed) {
  const TempDir dir;
  write_image_folders(dir / "photos", 4);
  const auto line = [&](const fs::path& run, const Arguments& more) {
    Arguments flags = {"--interpolation", "bicubic", "--train-interpolation", "random"};
    flags.insert(flags.end(), {"--epochs", "3"});
    flags.insert(flags.end(), more.begin(), more.end());
    return resnet20(dir / "photos", run, flags);
  };
  const ProgramResult one = run_program(line(dir / "one", {"--max-steps", "3"}));
  ASSERT_EQ(one.exit_code, 0) << said(one);
  const nlohmann::json record = read_json(dir / "one/run.json").at("evaluation").at("flags");
  EXPECT_EQ(record.at("interpolation"), "bicubic");
  EXPECT_EQ(record.at("train-interpolation"), "random");
  const ProgramResult several =
      run_ranks(2, line(dir / "two", {"--max-steps", "3", "-j", "3", "--cache-mb", "1"}));
  ASSERT_EQ(several.exit_code, 0) << said(several);
  expect_same_bits(dir / "one", dir / "two");
  // Flags that are not repeated come from the record.
  for (const Arguments& part :
       {line(dir / "parts", {"--max-steps", "2"}),
        resnet20(dir / "photos",
                 dir / "parts",
                 {"--epochs", "3", "--max-steps", "3", "--resume", "auto"})}) {
    const ProgramResult result = run_program(part);
    ASSERT_EQ(result.exit_code, 0) << said(result);
  }
  expect_same_bits(dir / "one", dir / "parts");
  const ProgramResult bilinear =
      run_program(resnet20(dir / "photos",
                           dir / "bilinear",
                           {"--epochs", "3", "--max-steps", "3", "--interpolation", "bicubic"}));
  ASSERT_EQ(bilinear.exit_code, 0) << said(bilinear);
  EXPECT_NE(learning_curve(dir / "bilinear"), learning_curve(dir / "one"));
  for (const char* flag : {"--interpolation", "--train-interpolation"}) {
    const ProgramResult other = run_program(
        line(dir / "parts", {"--max-steps", "4", "--resume", "auto", flag, "bilinear"}));
    EXPECT_EQ(other.exit_code, 4) << said(other);
    EXPECT_THAT(other.err, HasSubstr(std::string("error: ") + flag + " is bilinear, "));
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

TEST(ImageFolderRuns, EvaluateWithValAlone) {
  const TempDir dir;
  write_image_folders(dir / "photos", 4);
  const ProgramResult trained = run_program(resnet(dir / "photos", dir / "run"));
  ASSERT_EQ(trained.exit_code, 0) << said(trained);
  fs::remove_all(dir / "photos/train");
  const ProgramResult evaluated = run_program({"train_resnet",
                                               (dir / "photos").string(),
                                               "-e",
                                               "--pretrained",
                                               weights(dir / "run"),
                                               "-o",
                                               (dir / "evaluated").string()});
  ASSERT_EQ(evaluated.exit_code, 0) << said(evaluated);
  for (const char* figure : {"correct", "total", "loss"}) {
    EXPECT_EQ(read_json(dir / "evaluated/run.json")["final"][figure],
              read_json(dir / "run/run.json")["final"][figure]);
  }
  const ProgramResult refused = run_program(resnet(dir / "photos", dir / "refused"));
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("photos/train cannot be read"));
}

TEST(ImageFolderRuns, AreRefusedInThreeLines) {
  const TempDir dir;
  write_image_folders(dir / "photos", 1);
  fs::remove_all(dir / "photos/train/bees");
  const ProgramResult one_class = run_program(resnet(dir / "photos", dir / "run"));
  EXPECT_EQ(one_class.exit_code, 3);
  EXPECT_THAT(one_class.err, HasSubstr("train has only one class folder"));
  EXPECT_THAT(one_class.err, HasSubstr("\n  why: "));
  EXPECT_THAT(one_class.err, HasSubstr("\n  try: "));
  EXPECT_FALSE(fs::exists(dir / "run"));
}

// An epoch has four steps with eight photos each.
TEST(ImageFolderRuns, SkipOrEndTogetherWhateverTheRanks) {
  const TempDir dir;
  for (const int broken : {5, 12}) {
    const fs::path photos = dir / ("photos" + std::to_string(broken));
    write_image_folders(photos, 16);
    for (int i = 0; i < broken; ++i) {
      const char* name = i % 2 == 0 ? "train/ants" : "train/bees";
      write_file(photos / name / (std::to_string(i) + ".jpg"), {1, 2, 3});
    }
    std::vector<std::string> named;
    std::string error;
    for (const int ranks : {1, 2, 4}) {
      SCOPED_TRACE(std::to_string(broken) + " broken, ranks " + std::to_string(ranks));
      const Arguments more = {"--max-steps", "4", "-p", "2"};
      const fs::path run = dir / (std::to_string(broken) + "on" + std::to_string(ranks));
      const ProgramResult result = run_ranks(ranks, resnet20(photos, run, more));
      EXPECT_EQ(result.exit_code, broken == 5 ? 0 : 3) << said(result);
      const std::vector<std::string> lines = skips(result.err);
      const size_t at = result.err.find("lockstep: error: ");
      const std::string own = at == std::string::npos ? "" : result.err.substr(at, 250);
      if (ranks == 1) {
        named = lines;
        error = own;
        EXPECT_EQ(std::set(lines.begin(), lines.end()).size(), lines.size()) << result.err;
        EXPECT_GE(std::ssize(lines), broken == 5 ? 5 : 11);
        EXPECT_EQ(count_of(own, "more than 10 images of the data set"), broken == 12 ? 1 : 0);
      }
      EXPECT_EQ(lines, named) << result.err;
      EXPECT_EQ(own, error);
      EXPECT_EQ(count_of(result.err, "\n  try: "), broken == 5 ? 0 : 1);
      EXPECT_EQ(learning_curve(run), learning_curve(dir / (std::to_string(broken) + "on1")));
    }
  }
}

TEST(ImageFolderRuns, SayWhatTheLoaderIsBusyWith) {
  const TempDir dir;
  write_image_folders(dir / "photos", 8);
  for (const char* slow : {"disk", "decode"}) {
    const Arguments more = {"--max-steps", "3", "-p", "1", "--workers", "1", "--eval-freq", "10"};
    const ProgramResult result =
        run_program(resnet20(dir / "photos", dir / slow, more),
                    {.environment = {{"LOCKSTEP_FAULT", std::string("slow") + slow + ":ms=100"}}});
    ASSERT_EQ(result.exit_code, 0) << said(result);
    EXPECT_THAT(result.out, ContainsRegex("loader waited [0-9]+% \\(" + std::string(slow) + "\\)"));
    EXPECT_EQ(read_metrics(dir / slow).at(1).at("loader_busy_with"), slow);
  }
}

TEST(ImageFolderRuns, CacheWithoutChangingABit) {
  const TempDir dir;
  write_image_folders(dir / "photos", 8);
  const Arguments more = {"--max-steps", "5", "--epochs", "3"};
  Arguments cached = more;
  cached.insert(cached.end(), {"--cache-mb", "1"});
  const ProgramResult plain = run_program(resnet20(dir / "photos", dir / "plain", more));
  ASSERT_EQ(plain.exit_code, 0) << said(plain);
  for (const int ranks : {1, 2}) {
    const fs::path run = dir / std::to_string(ranks);
    const ProgramResult result = run_ranks(ranks, resnet20(dir / "photos", run, cached));
    ASSERT_EQ(result.exit_code, 0) << said(result);
    expect_same_bits(dir / "plain", run);
  }
}

TEST(ImageFolderRuns, TakeOtherSizesAndGoOnWithThem) {
  const TempDir dir;
  write_image_folders(dir / "photos", 4);
  const Arguments sizes = {
      "--train-crop-size", "64", "--val-resize-size", "70", "--val-crop-size", "65"};
  const ProgramResult first = run_program(resnet_of_any_size(dir / "photos", dir / "run", sizes));
  ASSERT_EQ(first.exit_code, 0) << said(first);
  const Arguments more = {"--max-steps", "2", "--resume", "auto"};
  Arguments otherwise = more;
  otherwise.insert(otherwise.end(), {"--val-crop-size", "66"});
  const ProgramResult other =
      run_program(resnet_of_any_size(dir / "photos", dir / "run", otherwise));
  EXPECT_EQ(other.exit_code, 4) << said(other);
  EXPECT_THAT(other.err, HasSubstr("error: --val-crop-size is 66, "));
  EXPECT_THAT(other.err, HasSubstr("step0000001.safetensors has 65\n"));
  const ProgramResult same = run_program(resnet_of_any_size(dir / "photos", dir / "run", more));
  EXPECT_EQ(same.exit_code, 0) << said(same);
  EXPECT_EQ(
      run_program(resnet_of_any_size(dir / "photos", dir / "large", {"--train-crop-size", "299"}))
          .exit_code,
      0);

  const ProgramResult too_large =
      run_program(resnet_of_any_size(dir / "photos", dir / "no", {"--val-crop-size", "300"}));
  EXPECT_EQ(too_large.exit_code, 2);
  EXPECT_THAT(too_large.err, HasSubstr("--val-crop-size 300 does not fit into"));
  const ProgramResult shapes = run_program({"train_resnet", "--train-crop-size", "64"});
  EXPECT_EQ(shapes.exit_code, 2);
  EXPECT_THAT(shapes.err, HasSubstr("--train-crop-size is for photos in class folders"));
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
  EXPECT_EQ(report.at("decode"), "exact");
  const ProgramResult shrunk =
      run_program({"bench_loader", "--data", train, "--decode", "shrunk", "--passes", "1"});
  EXPECT_EQ(nlohmann::json::parse(shrunk.out).at("decode"), "shrunk");
  EXPECT_EQ(run_program({"bench_loader", "--data", train, "--decode", "fast"}).exit_code, 2);
  const ProgramResult nothing = run_program({"bench_loader"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("--data is missing"));
}

}  // namespace
}  // namespace lockstep::testing::image_folder_test
