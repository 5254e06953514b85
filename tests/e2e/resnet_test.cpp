// train_resnet as users run it.
#include <cstdlib>
#include <regex>

#include "tests/e2e/training_runs.h"

namespace lockstep::testing::resnet_test {
namespace {

// train_resnet -a resnet20 on the built-in shapes. An evaluation of all 4,000 takes longer than the
// steps.
Arguments resnet(const std::filesystem::path& run, const Arguments& more = {}) {
  Arguments line = {"train_resnet", "--max-steps", "8", "-o", run.string()};
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

struct Cut {
  std::string name;
  Arguments flags;
  std::vector<int> ranks;
  std::vector<int> evaluated;  // which of them; the others' weights are compared
};
void PrintTo(const Cut& cut, std::ostream* out) {
  *out << cut.name;
}

class ResNetCuts : public ::testing::TestWithParam<Cut> {};

TEST_P(ResNetCuts, SameBitsOnAnyNumberOfRanks) {
  const TempDir dir;
  const auto run_of = [&](int ranks) { return dir / ("np" + std::to_string(ranks)); };
  for (const int ranks : GetParam().ranks) {
    Arguments line = resnet(run_of(ranks), GetParam().flags);
    const bool evaluates = std::ranges::count(GetParam().evaluated, ranks) > 0;
    if (!evaluates) line.emplace_back("--no-eval");
    const ProgramResult result = run_ranks(ranks, line);
    ASSERT_EQ(result.exit_code, 0) << said(result);
    const nlohmann::json record = read_json(run_of(ranks) / "run.json");
    const nlohmann::json first = read_json(run_of(GetParam().ranks.front()) / "run.json");
    EXPECT_EQ(record.at("digest"), first.at("digest")) << ranks << " ranks";
    if (!evaluates) continue;
    EXPECT_EQ(record.at("final").at("correct"), first.at("final").at("correct"));
    EXPECT_EQ(record.at("final").at("loss"), first.at("final").at("loss"));
  }
}
INSTANTIATE_TEST_SUITE_P(
    Batch64,
    ResNetCuts,
    ::testing::Values(
        Cut{"OwnStatistics",
            {"--shards", "8", "--bn-groups", "8", "--global-batch-size", "64", "--max-steps", "4"},
            {1, 2, 4, 8},
            {1, 8}},
        Cut{"SyncBatchNorm",
            {"--shards",
             "4",
             "--sync-bn",
             "--global-batch-size",
             "64",
             "--opt",
             "adamw",
             "--max-steps",
             "4"},
            {1, 4},
            {1, 4}}),
    [](const auto& cut) { return cut.param.name; });

TEST(TrainResnet, SaysWhatMainPySays) {
  const TempDir dir;
  const ProgramResult result = run_program(resnet(dir / "run", {"-p", "4", "-b", "32"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  for (const char* line :
       {R"(=> creating model 'resnet20')",
        R"(Epoch: \[0\]\[4/8\]\tTime +\S+ \( *\S+\)\tData .*\tLoss .*\tAcc@1 .*\tAcc@5 )",
        R"(Test: \[ *0/\d+\]\tTime .*\tLoss .*\tAcc@1 .*\tAcc@5 )",
        R"( \* Acc@1 \d+\.\d{3} Acc@5 \d+\.\d{3})"}) {
    EXPECT_TRUE(std::regex_search(result.out, std::regex(line))) << line << "\n" << result.out;
  }
}

// Without augmentation the loss would be different.
TEST(TrainResnet, AugmentsTheTrainingImages) {
  const TempDir dir;
  const ProgramResult result = run_program(
      resnet(dir / "run", {"--max-steps", "1", "-b", "64", "--seed", "5", "--no-eval"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_NEAR(read_metrics(dir / "run").front().at("loss").get<double>(), 3.47848, 1e-4);
}

TEST(TrainResnet, RefusesARunThatCannotEndWell) {
  const TempDir dir;
  // 20,000 images in steps of 7 leave a last step of one image, and resnet18 reduces 32x32 images
  // to one pixel.
  const ProgramResult lone =
      run_program({"train_resnet", "-a", "resnet18", "-b", "7", "-o", (dir / "lone").string()});
  EXPECT_EQ(lone.exit_code, 2) << said(lone);
  EXPECT_EQ(count_of(lone.err, "20000 images in steps of 7"), 1) << lone.err;
  const ProgramResult few = run_program(resnet(dir / "few", {"--num-classes", "3"}));
  EXPECT_EQ(few.exit_code, 2) << said(few);
  EXPECT_FALSE(std::filesystem::exists(dir / "few"));
}

// Needs the data: LOCKSTEP_CIFAR10 names the folder that contains cifar-10-batches-bin,
// LOCKSTEP_CIFAR10_WEIGHTS akamaster's trained ResNet-20 as safetensors. Skipped without them.
// Three ranks have unequal shares of the images. ResNetCuts, SavePhotoLogits and Resume compare
// evaluations on other numbers of ranks.
TEST(TrainedOnCifar10, CountsWhatPyTorchCounts) {
  const char* data = std::getenv("LOCKSTEP_CIFAR10");
  const char* weights = std::getenv("LOCKSTEP_CIFAR10_WEIGHTS");
  if (data == nullptr || weights == nullptr) {
    GTEST_SKIP() << "LOCKSTEP_CIFAR10 or LOCKSTEP_CIFAR10_WEIGHTS is not set";
  }
  const TempDir dir;
  const ProgramResult result = run_ranks(3,
                                         {"train_resnet",
                                          data,
                                          "-a",
                                          "resnet20",
                                          "--pretrained",
                                          weights,
                                          "--evaluate",
                                          "-o",
                                          (dir / "run").string()},
                                         {.limit_s = 120});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const nlohmann::json final = read_json(dir / "run" / "run.json").at("final");
  EXPECT_EQ(final.at("total"), 10000);
  EXPECT_NEAR(final.at("correct").get<double>(), 9173, 2);
  EXPECT_NEAR(final.at("loss").get<double>(), 0.372661, 1e-4);
}

}  // namespace
}  // namespace lockstep::testing::resnet_test
