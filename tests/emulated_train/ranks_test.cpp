// --device cuda on several ranks, whose gradients travel through the host.
#include "tests/emulated_train/programs.h"

namespace lockstep::testing::ranks_test {
namespace {

class SeveralRanks : public EmulatedProgram {
 protected:
  ProgramResult run(int ranks, const std::string& name, const Arguments& more = {}) const {
    Arguments line = on_cuda(name,
                             {"--global-batch-size",
                              "4",
                              "--shards",
                              "4",
                              "--max-steps",
                              "3",
                              "--check-ranks",
                              "2",
                              "--bucket-cap-mb",
                              "0.02",
                              "--transport",
                              "shm"});
    line.insert(line.end(), more.begin(), more.end());
    const ProgramOptions options = {.environment = {{"LOCKSTEP_EMULATION_DEVICES", "4"},
                                                    {"LOCKSTEP_EMULATION_STREAMS", order_}}};
    return run_on(ranks, line, options);
  }
  void expect_bits_of_one(const std::string& name) const {
    SCOPED_TRACE(name);
    expect_same_bits(dir_ / "one", dir_ / name);
  }

  std::string order_ = "lazy";
};

TEST_F(SeveralRanks, GiveTheBitsOfOne) {
  const Arguments groups = {"--bn-groups", "4", "--max-steps", "5", "--global-batch-size", "8"};
  expect_success(run(1, "one", groups));
  for (const int ranks : {2, 4}) {
    const std::string name = std::to_string(ranks);
    const ProgramResult result = run(ranks, name, groups);
    expect_success(result);
    EXPECT_EQ(count_of(result.out, "over shm, gradients travel through the host"), 1) << result.out;
    expect_bits_of_one(name);
  }
}

TEST_F(SeveralRanks, NoOptionOfTheExchangeChangesABit) {
  const Arguments groups = {"--bn-groups", "4"};
  expect_success(run(1, "one", groups));
  const std::pair<std::string, Arguments> options[] = {{"late", {"--no-overlap"}},
                                                       {"one_bucket", {"--bucket-cap-mb", "25"}},
                                                       {"mpi", {"--transport", "mpi"}},
                                                       {"star", {"--algorithm", "star"}}};
  for (auto [name, flags] : options) {
    flags.insert(flags.end(), groups.begin(), groups.end());
    expect_success(run(2, name, flags));
    expect_bits_of_one(name);
  }
}

TEST_F(SeveralRanks, NoOrderOfStreamsChangesABit) {
  const Arguments groups = {"--bn-groups", "4"};
  expect_success(run(1, "one", groups));
  for (const std::string& order : {std::string("eager"), random_order()}) {
    SCOPED_TRACE(order);
    order_ = order;
    expect_success(run(2, order, groups));
    expect_bits_of_one(order);
  }
}

TEST_F(SeveralRanks, ShareTheStatisticsOfABatchNormGroup) {
  expect_success(run(1, "one", {"--sync-bn"}));
  expect_success(run(4, "four", {"--sync-bn", "--batches-per-allreduce", "1"}));
  expect_bits_of_one("four");
}

TEST_F(SeveralRanks, GoOnWhereAnotherNumberStopped) {
  expect_success(run(1, "one", {"--bn-groups", "4"}));
  expect_success(run(4, "parts", {"--bn-groups", "4", "--max-steps", "2"}));
  expect_success(run(2, "parts", {"--bn-groups", "4", "--resume", "auto"}));
  const ProgramResult difference =
      run_program({"lockstep", "diff", weights(dir_ / "one"), weights(dir_ / "parts")});
  EXPECT_EQ(difference.exit_code, 0) << said(difference);
}

TEST_F(SeveralRanks, ThreeTrainToo) {
  const ProgramResult result = run(3, "three", {"--global-batch-size", "12", "--shards", "3"});
  expect_success(result);
  EXPECT_EQ(count_of(result.out, "same bits on 1,3 ranks"), 1) << result.out;
}

TEST_F(SeveralRanks, ADifferenceOfWeightsIsFound) {
  const Arguments line = on_cuda("run", {"-b", "4", "--max-steps", "4", "--check-ranks", "2"});
  const ProgramResult result =
      run_ranks(2,
                line,
                {.environment = {{"LOCKSTEP_EMULATION_DEVICES", "2"},
                                 {"LOCKSTEP_FAULT", "flipbit:rank=1,step=1"}}});
  EXPECT_EQ(result.exit_code, 6) << said(result);
  EXPECT_EQ(count_of(result.err, "rank 1 differs in layer1.0.weight"), 1) << result.err;
}

}  // namespace
}  // namespace lockstep::testing::ranks_test
