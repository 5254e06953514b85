// The same bytes whatever a run is spread over: weights, batch-norm statistics, loss log,
// evaluation.
#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"

namespace lockstep::testing {
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

// An epoch of 4,900 images: its last step is not full, and some of its shards are empty.
TEST_P(SameBits, ConvNetOnOneTwoFourAndEightRanks) {
  const TempDir data;
  write_small_mnist(data / "mnist", 4900, 500);
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
                         ::testing::Values(Cut{"1", "1"}, Cut{"2", "4"}, Cut{"8", "1"}),
                         ::testing::PrintToStringParamName());

// Options that say how, not what.
struct Variant {
  const char* name;
  Arguments arguments;
  std::map<std::string, std::string> environment = {};
};
void PrintTo(const Variant& variant, std::ostream* out) {
  *out << variant.name;
}

const Arguments kToyNetRun = {"train_convnet",
                              "--dataset",
                              "mnist",
                              "-a",
                              "toy_net",
                              "--epochs",
                              "1",
                              "--global-batch-size",
                              "32",
                              "--shards",
                              "4",
                              "--bn-groups",
                              "1",
                              "--print-freq",
                              "1"};

// The run that no option below may change, made once.
class OptionsThatChangeNoBit : public ::testing::TestWithParam<Variant> {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    write_small_mnist(*dir_ / "mnist", 90, 40);
    const ProgramResult result = run("base", {}, {});
    ASSERT_EQ(result.exit_code, 0) << said(result);
  }
  static void TearDownTestSuite() { delete dir_; }

  static ProgramResult run(const std::string& name,
                           const Arguments& more,
                           const std::map<std::string, std::string>& environment) {
    Arguments line = kToyNetRun;
    line.insert(line.end(), {"--data", (*dir_ / "mnist").string(), "-o", (*dir_ / name).string()});
    line.insert(line.end(), more.begin(), more.end());
    return run_ranks(2, line, {.environment = environment});
  }

  static TempDir* dir_;
};
TempDir* OptionsThatChangeNoBit::dir_ = nullptr;

TEST_P(OptionsThatChangeNoBit, OnTwoRanks) {
  const ProgramResult result = run(GetParam().name, GetParam().arguments, GetParam().environment);
  ASSERT_EQ(result.exit_code, 0) << said(result);
  expect_same_bits(*dir_ / "base", *dir_ / GetParam().name);
}
INSTANTIATE_TEST_SUITE_P(
    Variants,
    OptionsThatChangeNoBit,
    ::testing::Values(Variant{"Buckets1MiB", {"--bucket-cap-mb", "1"}},
                      Variant{"Buckets8MiB", {"--bucket-cap-mb", "8"}},
                      Variant{"ABucketForEachTensor", {"--bucket-cap-mb", "0.000001"}},
                      Variant{"NoOverlap", {"--no-overlap"}},
                      Variant{"Star", {"--algorithm", "star"}},
                      Variant{"SharedMemory", {"--transport", "shm"}},
                      Variant{"MpiOverSharedMemory", {"--transport", "mpi"}},
                      Variant{"MpiOverTcp", {"--transport", "mpi"}, {{"OMPI_MCA_btl", "self,tcp"}}},
                      Variant{"StarOverMpi", {"--algorithm", "star", "--transport", "mpi"}},
                      Variant{"OneThread", {"--threads", "1"}},
                      Variant{"ThreeThreads", {"--threads", "3"}},
                      Variant{"NoWorkers", {"-j", "0"}},
                      Variant{"ThreeWorkers", {"-j", "3"}},
                      Variant{"AuditEachStep", {"--check-ranks", "1"}},
                      Variant{"NoAudit", {"--check-ranks", "0"}}),
    ::testing::PrintToStringParamName());

}  // namespace
}  // namespace lockstep::testing
