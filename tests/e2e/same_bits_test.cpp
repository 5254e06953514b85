// The same bytes for any distribution of a run over ranks: weights, batch-norm statistics, loss
// log, evaluation.
#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"

namespace lockstep::testing::same_bits_test {
namespace {

void run_on_1_2_4_and_8_ranks(const Arguments& arguments) {
  const TempDir dir;
  for (const int ranks : {1, 2, 4, 8}) {
    const auto run = dir / std::to_string(ranks);
    Arguments line = arguments;
    line.insert(line.end(), {"--shards", "8", "-o", run.string()});
    const ProgramResult result = run_ranks(ranks, line);
    ASSERT_EQ(result.exit_code, 0) << said(result);
    EXPECT_NE(result.out.find("same bits on 1,2,4,8 ranks"), std::string::npos) << result.out;
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    expect_same_bits(dir / "1", run);
  }
}

struct Cut {
  const char* groups;
  const char* micro_steps;
};
void PrintTo(const Cut& cut, std::ostream* out) {
  *out << cut.groups << "Groups" << cut.micro_steps << "MicroSteps";
}

class SameBits : public ::testing::TestWithParam<Cut> {};

// An epoch of 996 images. Its last step is not full, and some of that step's shards are empty.
TEST_P(SameBits, ConvNetOnOneTwoFourAndEightRanks) {
  const TempDir data;
  write_small_mnist(data / "mnist", 996, 500);
  run_on_1_2_4_and_8_ranks({"train_convnet",
                            (data / "mnist").string(),
                            "--dataset",
                            "mnist",
                            "--epochs",
                            "2",
                            "--global-batch-size",
                            "64",
                            "--bn-groups",
                            GetParam().groups,
                            "--batches-per-allreduce",
                            GetParam().micro_steps});
}
INSTANTIATE_TEST_SUITE_P(
    Cuts,
    SameBits,
    ::testing::Values(Cut{"1", "1"}, Cut{"2", "4"}, Cut{"8", "1"}, Cut{"8", "4"}),
    ::testing::PrintToStringParamName());

class SameBitsToyNet : public ::testing::TestWithParam<Cut> {};

TEST_P(SameBitsToyNet, OnOneTwoFourAndEightRanks) {
  const TempDir data;
  write_small_mnist(data / "mnist", 160, 40);
  run_on_1_2_4_and_8_ranks({"train_convnet",
                            (data / "mnist").string(),
                            "--dataset",
                            "mnist",
                            "-a",
                            "toy_net",
                            "--epochs",
                            "1",
                            "--global-batch-size",
                            "64",
                            "--bn-groups",
                            GetParam().groups,
                            "--batches-per-allreduce",
                            GetParam().micro_steps});
}
INSTANTIATE_TEST_SUITE_P(Cuts,
                         SameBitsToyNet,
                         ::testing::Values(Cut{"1", "1"}, Cut{"2", "4"}),
                         ::testing::PrintToStringParamName());

// Options that change how a run computes, but not its result.
struct Variant {
  std::string name;
  Arguments arguments;
  std::map<std::string, std::string> environment = {};
};

// Runs the reference once and compares all variants with it.
void expect_the_bits_of_all(const std::string& network, const std::vector<Variant>& variants) {
  const TempDir dir;
  write_small_mnist(dir / "mnist", 90, 40);
  const auto run = [&](const Variant& variant) {
    Arguments line = {"train_convnet",
                      (dir / "mnist").string(),
                      "--dataset",
                      "mnist",
                      "-a",
                      network,
                      "--epochs",
                      "1",
                      "--global-batch-size",
                      "32",
                      "--shards",
                      "4",
                      "--bn-groups",
                      "1",
                      "--print-freq",
                      "1",
                      "-o",
                      (dir / variant.name).string()};
    line.insert(line.end(), variant.arguments.begin(), variant.arguments.end());
    const ProgramResult result = run_ranks(2, line, {.environment = variant.environment});
    ASSERT_EQ(result.exit_code, 0) << said(result);
  };
  ASSERT_NO_FATAL_FAILURE(run({"Base", {}}));
  for (const Variant& variant : variants) {
    SCOPED_TRACE(variant.name);
    ASSERT_NO_FATAL_FAILURE(run(variant));
    expect_same_bits(dir / "Base", dir / variant.name);
    std::filesystem::remove_all(dir / variant.name);
  }
}

// Gradients of 26 MiB, in several buckets.
TEST(OptionsThatChangeNoBit, BucketsOfALargeNetwork) {
  expect_the_bits_of_all("toy_net",
                         {{"Buckets1MiB", {"--bucket-cap-mb", "1"}},
                          {"Buckets8MiB", {"--bucket-cap-mb", "8"}},
                          {"MpiOverSharedMemory", {"--transport", "mpi"}}});
}

TEST(OptionsThatChangeNoBit, OnTwoRanks) {
  const std::vector<Variant> variants = {
      {"ABucketForEachTensor", {"--bucket-cap-mb", "0.000001"}},
      {"NoOverlap", {"--no-overlap"}},
      {"Star", {"--algorithm", "star"}},
      {"SharedMemory", {"--transport", "shm"}},
      {"MpiOverSharedMemory", {"--transport", "mpi"}},
      {"MpiOverTcp", {"--transport", "mpi"}, {{"OMPI_MCA_btl", "self,tcp"}}},
      {"StarOverMpi", {"--algorithm", "star", "--transport", "mpi"}},
      {"OneThread", {"--threads", "1"}},
      {"ThreeThreads", {"--threads", "3"}},
      {"NoWorkers", {"-j", "0"}},
      {"ThreeWorkers", {"-j", "3"}},
      {"AuditEachStep", {"--check-ranks", "1"}},
      {"NoAudit", {"--check-ranks", "0"}}};
  expect_the_bits_of_all("convnet", variants);
}

}  // namespace
}  // namespace lockstep::testing::same_bits_test
