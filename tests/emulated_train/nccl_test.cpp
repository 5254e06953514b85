// --device cuda on several ranks whose gradients travel over the emulated machine's NCCL.
#include <array>
#include <fstream>

#include "tests/emulated_train/programs.h"

namespace lockstep::testing::nccl_test {
namespace {

class OverNccl : public EmulatedRanks {
 protected:
  // Four steps: two that run as they are, one that is recorded, and one that repeats it.
  ProgramResult run(int ranks, const std::string& name, const Arguments& more = {}) const {
    Arguments line = {"--max-steps", "4"};
    if (transport_ != "") line.insert(line.end(), {"--transport", transport_});
    line.insert(line.end(), more.begin(), more.end());
    return EmulatedRanks::run(ranks, name, line);
  }

  std::string transport_ = "nccl";
};

TEST_F(OverNccl, RanksGiveTheBitsOfOne) {
  transport_ = "auto";
  const Arguments larger = {"--global-batch-size", "8", "--max-steps", "5"};
  const ProgramResult alone = run(1, "one", larger);
  expect_success(alone);
  EXPECT_EQ(count_of(alone.out, "NCCL"), 0) << alone.out;
  for (const int ranks : {2, 4}) {
    const std::string name = std::to_string(ranks);
    const ProgramResult result = run(ranks, name, larger);
    expect_success(result);
    EXPECT_EQ(count_of(result.out, "one graph per step) · tree all-reduce over NCCL 2.28.9"), 1)
        << result.out;
    EXPECT_EQ(read_json(dir_ / name / "run.json").at("run").at("transport"), "nccl");
    expect_bits_of("one", name);
  }
  transport_ = "nccl";  // the one that was asked for it
  expect_success(run(1, "self", larger));
  expect_bits_of("one", "self");
}

TEST_F(OverNccl, NoOptionOfTheExchangeChangesABit) {
  transport_ = "shm";
  expect_success(run(2, "host"));
  transport_ = "nccl";
  const std::pair<std::string, Arguments> options[] = {{"eager", {"--no-graph"}},
                                                       {"late", {"--no-overlap"}},
                                                       {"one_bucket", {"--bucket-cap-mb", "25"}}};
  for (const auto& [name, flags] : options) {
    expect_success(run(2, name, flags));
    expect_bits_of("host", name);
  }
}

TEST_F(OverNccl, NoOrderOfStreamsChangesABit) {
  const Arguments longer = {"--max-steps", "5"};
  expect_success(run(1, "one", longer));
  for (const std::string& order : {std::string("eager"), random_order(0), random_order(1)}) {
    SCOPED_TRACE(order);
    order_ = order;
    expect_success(run(2, order, longer));
    expect_bits_of("one", order);
  }
  expect_success(run(2, "no_graph", {"--max-steps", "5", "--no-graph"}));
  expect_bits_of("one", "no_graph");
}

TEST_F(OverNccl, MixedPrecisionSkipsTheSameSteps) {
  const Arguments mixed = {
      "--opt-level", "O2", "--fp16-allreduce", "--loss-scale", "dynamic", "--max-steps", "5"};
  expect_success(run(1, "one", mixed));
  expect_success(run(4, "four", mixed));
  expect_bits_of("one", "four");
}

TEST_F(OverNccl, ThreeTrainToo) {
  const Arguments three = {
      "--global-batch-size", "12", "--shards", "3", "--bn-groups", "3", "--max-steps", "4"};
  expect_success(run(3, "nccl", three));
  transport_ = "shm";
  expect_success(run(3, "host", three));
  expect_bits_of("host", "nccl");
}

// What the tests above are worth: without one of its waits the exchange gives other bits.
TEST_F(OverNccl, AForgottenWaitShowsInSomeOrder) {
  const Arguments few = {"--max-steps", "2", "--no-graph", "--no-eval"};
  expect_success(run(1, "one", few));
  const auto differs = [&](const std::string& forgets) {
    environment_["LOCKSTEP_EMULATION_FORGETS"] = forgets;
    for (const std::string order : {"lazy", "random:1", "random:2", "random:3"}) {
      order_ = order;
      const std::string name = forgets + order;
      const ProgramResult result = run(2, name, few);
      if (result.exit_code != 0) return true;  // a NaN of memory that nobody wrote
      if (read_json(dir_ / name / "run.json").at("digest") !=
          read_json(dir_ / "one" / "run.json").at("digest"))
        return true;
    }
    return false;
  };
  EXPECT_FALSE(differs("nothing"));
  EXPECT_TRUE(differs("to-wait"));        // buckets leave before their gradients are there
  EXPECT_TRUE(differs("to-be-awaited"));  // the optimizer goes on before the sums are there
}

// Four ranks of two groups, two of one.
TEST_F(OverNccl, ShareTheStatisticsOfABatchNormGroup) {
  for (const auto& [ranks, groups] : {std::pair(4, "2"), std::pair(2, "1")}) {
    const Arguments shared = {"--bn-groups", groups};
    const std::string one = groups, many = one + "-shared";
    expect_success(run(1, one, shared));
    const ProgramResult result = run(ranks, many, shared);
    expect_success(result);
    EXPECT_EQ(count_of(result.out, "one graph per step) · tree all-reduce over NCCL"), 1)
        << result.out;
    expect_bits_of(one, many);
  }
  for (const std::string order : {"eager", "random:1", "random:2"}) {
    order_ = order;
    expect_success(run(2, order, {"--bn-groups", "1"}));
    expect_bits_of("1", order);
  }
  expect_success(run(2, "no_graph", {"--bn-groups", "1", "--no-graph"}));
  expect_bits_of("1", "no_graph");
  // Without NCCL's own way the statistics go through the host, and no step is a graph.
  const ProgramResult alone =
      run(2, "none", {"--bn-groups", "1", "--algorithm", "none", "--max-steps", "3"});
  expect_success(alone);
  EXPECT_EQ(count_of(alone.out, "no graph)"), 1) << alone.out;
}

TEST_F(OverNccl, GoOnWhereAnotherNumberStopped) {
  expect_success(run(1, "one", {"--max-steps", "6"}));
  expect_success(run(4, "parts", {"--max-steps", "3"}));
  expect_success(run(2, "parts", {"--max-steps", "6", "--resume", "auto"}));
  EXPECT_EQ(read_json(dir_ / "parts" / "run.json").at("digest"),
            read_json(dir_ / "one" / "run.json").at("digest"));
}

TEST_F(OverNccl, ItsOwnSumIsOutsideThePromise) {
  transport_ = "";
  const ProgramResult result = run(2, "own", {"--algorithm", "nccl", "--check-ranks", "2"});
  expect_success(result);
  EXPECT_EQ(count_of(result.out, "nccl all-reduce over NCCL 2.28.9"), 1) << result.out;
  EXPECT_EQ(count_of(result.out, "same bits: off, --algorithm nccl"), 1) << result.out;
}

// Two addends have one order; more do not have the tree's.
TEST_F(OverNccl, TheRingIsOutsideThePromise) {
  expect_success(run(2, "tree"));
  transport_ = "auto";
  const ProgramResult two = run(2, "ring", {"--algorithm", "ring"});
  expect_success(two);
  EXPECT_EQ(count_of(two.out, "one graph per step) · ring all-reduce over NCCL 2.28.9"), 1)
      << two.out;
  EXPECT_EQ(count_of(two.out, "same bits: off, --algorithm ring"), 1) << two.out;
  expect_bits_of("tree", "ring");
  transport_ = "nccl";
  const Arguments four = {"--algorithm", "ring", "--check-ranks", "2"};
  expect_success(run(4, "four", four));
  order_ = "random:1";
  expect_success(run(4, "reordered", four));
  expect_bits_of("four", "reordered");
}

// Of all ranks together.
using Counts = std::array<long, 5>;

TEST_F(OverNccl, AStepIsOneGraphOnEachRankAndWaitsForNothing) {
  order_ = "eager";
  for (const std::string groups : {"2", "1"}) {
    const auto counts = [&](const std::string& steps) {
      const std::string name = groups + "-" + steps;
      const std::string file = (dir_ / ("counts" + name)).string();
      environment_["LOCKSTEP_EMULATION_COUNTS"] = file;
      expect_success(run(2, name, {"--max-steps", steps, "-p", "4", "--bn-groups", groups}));
      std::ifstream lines(file);
      Counts sums{};
      for (Counts line{}; lines >> line[0] >> line[1] >> line[2] >> line[3] >> line[4];) {
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += line[i];
      }
      return sums;
    };
    // Beyond the first print interval, whose steps take page-locked memory for their losses.
    const Counts few = counts("5"), more = counts("7");
    EXPECT_EQ(more[0] - few[0], 2 * 2);  // the input's kernel
    EXPECT_EQ(more[1] - few[1], 2 * 2);  // the graph
    for (const size_t nothing : {2, 3, 4}) EXPECT_EQ(more[nothing], few[nothing]) << nothing;
  }
}

class FailingNccl : public OverNccl {
 protected:
  ProgramResult run_with(const std::string& fault, const Arguments& more = {}, int ranks = 2) {
    environment_["LOCKSTEP_EMULATION_NCCL"] = fault;
    return run(ranks, "run", more);
  }
  static void expect_error(const ProgramResult& result, int code, const std::string& what) {
    EXPECT_EQ(result.exit_code, code) << said(result);
    EXPECT_NE(result.err.find(what), std::string::npos) << result.err;
    EXPECT_GE(count_of(result.err, "\n  try: "), 1) << result.err;
  }
};

// NcclExchange.FailuresEndInTheirExitCodes has each of these failures on two ranks.
TEST_F(FailingNccl, IsRefusedBeforeTheRunBegins) {
  const ProgramResult missing = run_with("missing");
  expect_error(missing, 5, "error: NCCL 2 cannot be loaded\n");
  expect_error(missing, 5, "; or --transport shm or mpi\n");
  const auto alone = [&](const char* fault) { return run_with(fault, {}, 1); };
  expect_error(alone("old-version"), 5, "why: it is 2.17.1, the exchange of gradients needs");
  expect_error(alone("lacks-a-function"), 5, "why: it has no function ncclSend\n");
  expect_error(alone("init-fails"), 5, "error: NCCL does not start\n");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
}

TEST_F(FailingNccl, GivesWayWhereItWasNotAskedFor) {
  transport_ = "auto";
  const ProgramResult peers = run_with("missing", {"--max-steps", "1"});
  expect_success(peers);
  EXPECT_EQ(count_of(peers.err, "gradients travel over CUDA IPC: NCCL 2 cannot be loaded"), 1)
      << said(peers);
  environment_["LOCKSTEP_EMULATION_IPC"] = "no-peers";
  const ProgramResult result = run_with("missing", {"--max-steps", "1", "--overwrite"});
  expect_success(result);
  EXPECT_EQ(count_of(result.err, "gradients travel through the host: NCCL 2 cannot be loaded"), 1)
      << said(result);
  EXPECT_EQ(count_of(result.out, "over shm, gradients travel through the host"), 1) << result.out;
  environment_["LOCKSTEP_EMULATION_IPC"] = "";
  const ProgramResult ring =
      run_with("missing", {"--algorithm", "ring", "--max-steps", "1", "--overwrite"});
  expect_success(ring);
  EXPECT_EQ(count_of(ring.err, "; no CUDA IPC: its sums are trees"), 1) << said(ring);
  EXPECT_EQ(count_of(ring.out, "ring all-reduce over shm"), 1) << ring.out;
}

TEST_F(FailingNccl, EndsWhenTheRanksDoNotMeet) {
  stall_abort_s_ = 1;
  expect_error(run_with("init-hangs"), 75, "gave up waiting in NCCL for all ranks to meet\n");
}

TEST_F(FailingNccl, EndsWhenAStepNeverDoes) {
  stall_abort_s_ = 1;
  const ProgramResult eager = run_with("hangs:8", {"--no-graph"});
  expect_error(eager, 75, "gave up waiting in NCCL for the sum of bucket ");
  // Recorded in the third step, launched for ever.
  expect_error(run_with("hangs:16", {"--overwrite"}), 75, "gave up waiting in NCCL for ");
}

TEST_F(FailingNccl, EndsWhenTheWeightsNeverCome) {
  stall_abort_s_ = 1;
  expect_error(run_with("hangs:1"), 75, "gave up waiting in NCCL for tensors of rank 0\n");
}

TEST_F(FailingNccl, EndsWhenNcclSaysSo) {
  expect_error(run_with("async-error:4"), 75, "NCCL failed in ");
}

TEST_F(FailingNccl, EndsWhenARankStops) {
  stall_abort_s_ = 1;
  environment_["LOCKSTEP_FAULT"] = "stop:rank=1,step=3";
  expect_error(run(2, "run"), 75, "rank 0 gave up waiting in ");
}

}  // namespace
}  // namespace lockstep::testing::nccl_test
