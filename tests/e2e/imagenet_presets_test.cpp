// ImageNet recipes on a folder with few photos: the recipes of pytorch/examples, Apex, torchvision
// and ResNet Strikes Back.
#include <regex>
#include <sstream>
#include <utility>

#include <gmock/gmock.h>

#include "tests/e2e/training_runs.h"
#include "tests/support/golden.h"
#include "tests/support/image_files.h"

namespace lockstep::testing::imagenet_presets_test {
namespace {

using ::testing::HasSubstr;

class ImagenetPresets : public ::testing::Test {
 protected:
  // Trains one epoch of one step with eight photos.
  ProgramResult run(const std::string& preset, const Arguments& more) {
    write_image_folders(dir_ / "photos", 4);
    Arguments line = {"train_resnet", (dir_ / "photos").string(), "--preset", preset};
    line.insert(line.end(), {"-o", (dir_ / "run").string(), "--epochs", "6", "--max-steps", "1"});
    line.insert(line.end(), more.begin(), more.end());
    return run_program(line);
  }
  double first_rate() const { return read_metrics(dir_ / "run").front().at("lr").get<double>(); }

  const TempDir dir_;
};

bool has_line(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex("(^|\n)" + pattern + "(\n|$)"));
}

const std::string kMeter = R"([0-9.]+ \([0-9.]+\))";  // NOLINT: of this test alone

TEST_F(ImagenetPresets, OfMainPy) {
  const ProgramResult result = run("imagenet-main", {"-b", "8"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_THAT(result.out, HasSubstr("=> creating model 'resnet18'\n"));
  EXPECT_TRUE(has_line(result.out, R"(Epoch: \[0\]\[1/1\]\tTime .*\tData .*\tLoss .*\tAcc@1 .*)"))
      << result.out;
  EXPECT_TRUE(has_line(result.out, R"( \* Acc@1 [0-9.]+ Acc@5 [0-9.]+)"));
  EXPECT_EQ(first_rate(), 0.1);
}

// Item 1.9: 0.1 * 8 / 256 * (1 + 1) / (5 epochs of one step).
TEST_F(ImagenetPresets, OfApex) {
  const ProgramResult result = run("apex-imagenet", {"-b", "8", "--opt-level", "O2"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_THAT(result.out, HasSubstr("=> creating model 'resnet18'\n"));
  EXPECT_TRUE(has_line(result.out,
                       R"(Epoch: \[0\]\[1/1\]\tTime )" + kMeter + "\tThroughput " + kMeter +
                           "\tLoss " + R"([0-9]+\.[0-9]{10} \([0-9]+\.[0-9]{4}\)\tPrec@1 )" +
                           kMeter + "\tPrec@5 " + kMeter))
      << result.out;
  EXPECT_TRUE(has_line(result.out, R"(Test: \[0/[0-9]+\]\tTime .*\tSpeed .*\tLoss .*\tPrec@1 .*)"))
      << result.out;
  EXPECT_TRUE(has_line(result.out, R"( \* Prec@1 [0-9.]+ Prec@5 [0-9.]+)")) << result.out;
  EXPECT_NEAR(first_rate(), 0.00125, 1e-12);
  const std::string events = events_in(dir_ / "run");  // item 1.10
  for (const char* tag : {"Loss/train",
                          "Loss/val",
                          "Top1/train",
                          "Top1/val",
                          "Top5/train",
                          "Top5/val",
                          "Throughput/train",
                          "Time/train",
                          "Lr"}) {
    EXPECT_EQ(count_of(events, tag), 1) << tag;
  }
}

// Leaves one test photo of each class: here an evaluation need not be long.
void keep_few_test_photos(const std::filesystem::path& photos, int images) {
  for (const char* name : {"ants", "bees"}) {
    for (int i = 1; i < images; ++i) {
      std::filesystem::remove(photos / "val" / name / (std::to_string(i) + ".jpg"));
    }
  }
}

// Two steps with eight photos: of rsb-a2 in the recipe's sizes, of the others in small ones.
// tests/trainers/recipe_presets_test.cpp checks the sizes of all three.
TEST_F(ImagenetPresets, OfTorchvisionAndStrikesBackHaveTheSameBitsOnTwoRanks) {
  write_image_folders(dir_ / "photos", 8);
  keep_few_test_photos(dir_ / "photos", 8);
  const auto train = [&](int ranks, const std::string& preset) {
    const std::filesystem::path run = dir_ / (preset + std::to_string(ranks));
    Arguments line = {"train_resnet", (dir_ / "photos").string(), "--preset", preset};
    line.insert(line.end(), {"-a", "resnet18", "--global-batch-size", "8", "--shards", "4"});
    line.insert(line.end(), {"--bn-groups", "2", "--max-steps", "2", "-p", "1", "-j", "1"});
    line.insert(line.end(), {"-o", run.string()});
    for (const char* size : {"--train-crop-size", "--val-crop-size", "--val-resize-size"}) {
      if (preset != "rsb-a2") line.insert(line.end(), {size, "64"});
    }
    const ProgramResult result = run_ranks(ranks, line);
    EXPECT_EQ(result.exit_code, 0) << said(result);
    return run;
  };
  for (const auto& [preset, rate] :
       {std::pair{"torchvision-v2", 0.005}, {"rsb-a2", 1e-4}, {"rsb-a3", 1e-4}}) {
    SCOPED_TRACE(preset);
    const std::filesystem::path two = train(2, preset);
    if (HasFailure()) return;
    EXPECT_NEAR(read_metrics(two).front().at("lr").get<double>(), rate, 1e-12);
    EXPECT_EQ(read_json(two / "run.json").at("digest"),
              read_json(train(1, preset) / "run.json").at("digest"));
  }
}

// Runs each command of docs/imagenet.md for one step with eight photos.
TEST_F(ImagenetPresets, CommandsOfTheDocumentationRun) {
  write_image_folders(dir_ / "photos", 4);
  keep_few_test_photos(dir_ / "photos", 4);
  std::istringstream text(read_text(golden_folder() / "../../docs/imagenet.md"));
  int commands = 0;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("build/release/bin/train_resnet DIR ")) continue;
    std::istringstream words(line);
    std::string word;
    words >> word >> word;
    Arguments arguments = {"train_resnet", (dir_ / "photos").string()};
    while (words >> word) arguments.push_back(word);
    const std::string run = (dir_ / std::to_string(commands++)).string();
    if (line.find(" -a ") == std::string::npos) {
      arguments.insert(arguments.end(), {"-a", "resnet18"});
    }
    const bool grows = line.find("ffcv") != std::string::npos;  // from 160 pixels
    for (const char* size : {"--train-crop-size", "--val-crop-size", "--val-resize-size"}) {
      if (!grows) arguments.insert(arguments.end(), {size, "64"});
    }
    arguments.insert(arguments.end(), {"-b", "8", "--max-steps", "1", "-o", run});
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << said(result);
    std::filesystem::remove_all(run);  // hundreds of megabytes
  }
  EXPECT_EQ(commands, 12);
}

}  // namespace
}  // namespace lockstep::testing::imagenet_presets_test
