// Items of the tutorials that are visible in whole runs. The number in a test's name is the number
// of the item.
#include <algorithm>
#include <regex>
#include <thread>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"
#include "tests/support/golden.h"
#include "tests/support/image_files.h"

namespace lockstep::testing::tutorial_items_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

bool has_line(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex("(^|\n)" + pattern + "(\n|$)"));
}

TEST(Tutorial, Item0_23TwoTrainingsOnOneHostNeedNoPorts) {
  const TempDir dir;
  ProgramResult first;
  std::thread beside([&] { first = run_ranks(2, convnet(dir / "first")); });
  const ProgramResult second = run_ranks(2, convnet(dir / "second"));
  beside.join();
  EXPECT_EQ(first.exit_code, 0) << said(first);
  EXPECT_EQ(second.exit_code, 0) << said(second);
  expect_same_bits(dir / "first", dir / "second");
}

TEST(Tutorial, Item2_3RankZeroAlonePrintsTheTutorialsLines) {
  for (const int ranks : {2, 4}) {
    const TempDir dir;
    const Arguments more = {"--preset", "demo-ddp", "--opt-level", "O0", "--epochs", "1"};
    const ProgramResult result = run_ranks(ranks, convnet(dir / "run", more));
    EXPECT_EQ(result.exit_code, 0) << said(result);
    const std::regex lines(
        "begin training of epoch 1/1\nbegin testing\nAccuracy is \\d+\\.\\d\\d%\n"
        "\ntime elapsed: \\d+\\.\\d\\d seconds\n");
    EXPECT_TRUE(std::regex_match(result.out, lines)) << result.out;
  }
}

TEST(Tutorial, Item4_11TheReadmeSaysWhichParallelismThereIs) {
  const std::string readme = read_text(golden_folder() / "../../README.md");
  EXPECT_THAT(readme, HasSubstr("no model parallelism, no ZeRO"));
  EXPECT_THAT(readme, HasSubstr("GPUs need sm_80 (A100) or newer"));
  EXPECT_THAT(readme, HasSubstr("A network sees (pixel/255 - mean)/deviation"));
}

TEST(Tutorial, Item1_12LinesOfTheScript) {
  const TempDir dir;
  write_image_folders(dir / "photos", 4);
  const ProgramResult result = run_program({"train_resnet",
                                            (dir / "photos").string(),
                                            "--preset",
                                            "apex-imagenet",
                                            "-b",
                                            "8",
                                            "--opt-level",
                                            "O2",
                                            "--max-steps",
                                            "1",
                                            "-o",
                                            (dir / "run").string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_THAT(result.out,
              HasSubstr("opt_level = O2\nkeep_batchnorm_fp32 = True\nloss_scale = dynamic\n"
                        "### global rank of curr node: 0\n=> creating model 'resnet18'\n"));
  EXPECT_THAT(result.out, Not(HasSubstr("using CPU")));
  EXPECT_TRUE(has_line(
      result.out, R"(### Training Time: 0\.00 hrs [0-9]+\.00 mins [0-9.]+ secs \| [0-9.]+ secs)"))
      << result.out;
}

TEST(Tutorial, Item3_1ThreadsGiveTheBitsOfProcesses) {
  const TempDir dir;
  const Arguments threads = {"--parallel", "dp", "--devices", "2", "--threads", "1"};
  const ProgramResult dp = run_program(convnet(dir / "dp", threads));
  ASSERT_EQ(dp.exit_code, 0) << said(dp);
  EXPECT_THAT(dp.out, HasSubstr("2 ranks of 1 thread"));
  EXPECT_THAT(dp.out, HasSubstr("tree all-reduce over threads"));
  EXPECT_EQ(count_of(dp.out, "Accuracy is"), 1) << dp.out;
  const ProgramResult ddp = run_ranks(2, convnet(dir / "ddp", {"--threads", "1"}));
  ASSERT_EQ(ddp.exit_code, 0) << said(ddp);
  expect_same_bits(dir / "ddp", dir / "dp");
  const Arguments three = {"--transport", "threads", "--devices", "3", "--threads", "1"};
  EXPECT_EQ(run_program(convnet(dir / "three", three)).exit_code, 0);
}

TEST(Tutorial, Item3_1AThreadThatFailsEndsTheProcessAndOneMessageSaysWhy) {
  const TempDir dir;
  const ProgramResult bad =
      run_program(convnet(dir / "run", {"--parallel", "dp", "--devices", "2", "--shards", "1"}));
  EXPECT_EQ(bad.exit_code, 2) << said(bad);
  EXPECT_EQ(count_of(bad.err, "lockstep: error:"), 1) << bad.err;
  const ProgramResult both =
      run_ranks(2, convnet(dir / "both", {"--parallel", "dp", "--devices", "2"}));
  EXPECT_EQ(both.exit_code, 2) << said(both);
  EXPECT_THAT(both.err, HasSubstr("--parallel dp is one process"));
}

TEST(Tutorial, Item3_9MessagesOfMainPy) {
  const TempDir dir;
  write_image_folders(dir / "photos", 4);
  const Arguments line = {"train_resnet",
                          (dir / "photos").string(),
                          "--preset",
                          "imagenet-main",
                          "-b",
                          "4",
                          "--gpu",
                          "0",
                          "--seed",
                          "3",
                          "--max-steps",
                          "1",
                          "--train-crop-size",
                          "32",
                          "--val-crop-size",
                          "32",
                          "--val-resize-size",
                          "32",
                          "-o",
                          (dir / "run").string()};
  const ProgramResult one = run_program(line);
  ASSERT_EQ(one.exit_code, 0) << said(one);
  EXPECT_THAT(one.out, HasSubstr("=> creating model 'resnet18'\nusing CPU, this will be slow\n"));
  EXPECT_THAT(one.err, HasSubstr("You have chosen a specific GPU."));
  EXPECT_THAT(one.err, HasSubstr("You have chosen to seed training."));
  Arguments two = line;
  two.insert(two.end(), {"--overwrite"});
  const ProgramResult node = run_ranks(2, two);
  ASSERT_EQ(node.exit_code, 0) << said(node);
  EXPECT_THAT(node.err, HasSubstr("note: 8 images per step (main.py: 4)"));
  EXPECT_THAT(node.err, HasSubstr("note: 8 loader threads on a host of 2 ranks (main.py: 4)"));
}

TEST(Tutorial, Item3_12CsvHasARowAnEpochOfAResumedRunToo) {
  const TempDir dir;
  const std::string csv = (dir / "epochs.csv").string();
  write_small_mnist(dir / "mnist", 320, 100);
  const auto run = [&](const Arguments& more) {
    Arguments line = {"train_convnet", (dir / "mnist").string(), "--dataset", "mnist"};
    line.insert(line.end(), {"--csv", csv});
    line.insert(line.end(), {"-o", (dir / "run").string(), "--eval-freq", "2"});
    line.insert(line.end(), more.begin(), more.end());
    return run_program(line);
  };
  const ProgramResult first = run({"--epochs", "2"});
  ASSERT_EQ(first.exit_code, 0) << said(first);
  const std::string two = read_text(csv);
  EXPECT_EQ(count_of(two, "\n"), 3) << two;
  const ProgramResult second = run({"--epochs", "3", "--resume", "auto"});
  ASSERT_EQ(second.exit_code, 0) << said(second);
  const std::string three = read_text(csv);
  EXPECT_TRUE(three.starts_with(two)) << three;
  EXPECT_EQ(count_of(three, "\n"), 4) << three;
  EXPECT_EQ(count_of(three, "start_time,epoch_seconds"), 1) << three;
  EXPECT_TRUE(has_line(three, R"(20[0-9TZ:-]+,[0-9.]+,0,[0-9]+,0\.02,[0-9.]+,[0-9.]+,[0-9.]+,,,)"))
      << three;
  const nlohmann::json last = read_metrics(dir / "run").back();
  EXPECT_THAT(three,
              HasSubstr(fmt::format(",{:.9g},{:.9g},{:.9g}\n",
                                    last.at("loss").get<double>(),
                                    last.at("acc1").get<double>(),
                                    last.at("acc5").get<double>())));
}

// Their scripts test once, at the end, and a flag may ask for more.
TEST(Tutorial, TheDemosEvaluateAsOftenAsAFlagSays) {
  const TempDir dir;
  write_small_mnist(dir / "mnist", 64, 20);
  const auto evaluations = [&](const std::string& name, const Arguments& more) {
    Arguments line = {"train_convnet", (dir / "mnist").string(), "--dataset", "mnist"};
    line.insert(line.end(), {"--preset", "demo-baseline", "-o", (dir / name).string()});
    line.insert(line.end(), more.begin(), more.end());
    const ProgramResult result = run_program(line);
    EXPECT_EQ(result.exit_code, 0) << said(result);
    return std::ranges::count_if(read_metrics(dir / name), [](const nlohmann::json& each) {
      return each.at("split") == "val";
    });
  };
  EXPECT_EQ(evaluations("preset", {}), 1);
  EXPECT_EQ(evaluations("asked", {"--eval-freq", "1"}), 3);
}

// The expected values are PyTorch 2.9's for the same samples: batches of 4 on one rank, of 8 on
// two.
TEST(Tutorial, Item4_4TheMinimalProgramTrainsAsPyTorchDoes) {
  const ProgramResult one = run_program({"minimal_example"});
  ASSERT_EQ(one.exit_code, 0) << said(one);
  EXPECT_THAT(one.out, HasSubstr("step 1 loss 2.289466\n"));
  EXPECT_THAT(one.out, HasSubstr("step 10 loss 2.414085\nrank 0 weight 0.083431\n"));
  const ProgramResult two = run_ranks(2, {"minimal_example"});
  ASSERT_EQ(two.exit_code, 0) << said(two);
  EXPECT_THAT(two.out, HasSubstr("step 1 loss 2.470876\n"));
  EXPECT_THAT(two.out, HasSubstr("step 10 loss 2.415560\n"));
  EXPECT_THAT(two.out, HasSubstr("rank 0 weight 0.083363\n"));
  EXPECT_THAT(two.out, HasSubstr("rank 1 weight 0.083363\n"));
}

}  // namespace
}  // namespace lockstep::testing::tutorial_items_test
