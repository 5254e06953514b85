// --device cuda on several ranks of one GPU, whose gradients travel over the emulated machine's
// CUDA IPC.
#include "tests/emulated_train/programs.h"

namespace lockstep::testing::ipc_test {
namespace {

class OverIpc : public EmulatedRanks {
 protected:
  OverIpc() { devices_ = "1"; }

  ProgramResult run(int ranks, const std::string& name, const Arguments& more = {}) const {
    Arguments line = {"--max-steps", "3", "--check-ranks", "2"};
    line.insert(line.end(), more.begin(), more.end());
    return EmulatedRanks::run(ranks, name, line);
  }
};

TEST_F(OverIpc, RanksOfOneGpuGiveTheBitsOfOne) {
  expect_success(run(1, "one"));
  for (const int ranks : {2, 4}) {
    const std::string name = std::to_string(ranks);
    const ProgramResult result = run(ranks, name);
    expect_success(result);
    EXPECT_EQ(count_of(result.out, "no graph) · tree all-reduce over CUDA IPC"), 1) << result.out;
    EXPECT_EQ(
        count_of(result.err, "note: gradients travel over CUDA IPC: ranks 0 and 1 share a GPU"), 1)
        << result.err;
    EXPECT_EQ(read_json(dir_ / name / "run.json").at("run").at("transport"), "ipc");
    expect_bits_of("one", name);
  }
}

TEST_F(OverIpc, NoOptionOfTheExchangeChangesABit) {
  expect_success(run(2, "host", {"--transport", "shm"}));
  order_ = "random:1";
  expect_success(run(2, "late", {"--no-overlap"}));
  devices_ = "2";  // peers
  order_ = "random:2";
  const ProgramResult peers = run(2, "peers", {"--transport", "ipc"});
  expect_success(peers);
  EXPECT_EQ(count_of(peers.out, "tree all-reduce over CUDA IPC"), 1) << peers.out;
  for (const std::string name : {"late", "peers"}) expect_bits_of("host", name);
}

// Half precision on the wire, micro-steps, and statistics that pass through the host.
TEST_F(OverIpc, ThreeTrainToo) {
  const Arguments three = {"--global-batch-size",
                           "12",
                           "--shards",
                           "3",
                           "--bn-groups",
                           "1",
                           "--batches-per-allreduce",
                           "2",
                           "--fp16-allreduce"};
  expect_success(run(3, "ipc", three));
  Arguments host = three;
  host.insert(host.end(), {"--transport", "shm"});
  expect_success(run(3, "host", host));
  expect_bits_of("host", "ipc");
}

TEST_F(OverIpc, GivesWayToTheHostWhereItIsRefused) {
  environment_["LOCKSTEP_EMULATION_IPC"] = "refused";
  const ProgramResult result = run(2, "run", {"--max-steps", "1"});
  expect_success(result);
  EXPECT_EQ(count_of(result.err, "note: gradients travel through the host: ranks 0 and 1 share"), 1)
      << result.err;
  EXPECT_EQ(count_of(result.err, "no CUDA IPC: rank 0: [import_memory] CUDA: mapping of"), 1)
      << result.err;
  EXPECT_EQ(count_of(result.out, "over shm, gradients travel through the host"), 1) << result.out;
}

TEST_F(OverIpc, IsRefusedBeforeTheRunBeginsWhereItWasAskedFor) {
  environment_["LOCKSTEP_EMULATION_IPC"] = "no-peers";
  devices_ = "2";
  const ProgramResult result = run(2, "run", {"--transport", "ipc"});
  EXPECT_EQ(result.exit_code, 5) << said(result);
  EXPECT_EQ(count_of(result.err, "error: the ranks cannot exchange gradients over CUDA IPC\n"), 1)
      << result.err;
  EXPECT_EQ(count_of(result.err, "\n  why: rank 0: its kernels cannot reach the memory of rank 1"),
            1)
      << result.err;
  EXPECT_EQ(count_of(result.err, "\n  try: "), 1) << result.err;
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
}

TEST_F(OverIpc, EndsWhenARankIsLost) {
  stall_abort_s_ = 1;
  environment_["LOCKSTEP_FAULT"] = "stop:rank=1,step=2";
  const ProgramResult stopped = run(2, "stopped");
  EXPECT_EQ(stopped.exit_code, 75) << said(stopped);
  EXPECT_NE(stopped.err.find("rank 0 gave up waiting "), std::string::npos) << stopped.err;
  EXPECT_LT(stopped.seconds, 30);
  environment_["LOCKSTEP_FAULT"] = "kill:rank=1,step=2";
  stall_abort_s_ = 60;
  const ProgramResult killed = run(2, "killed");
  EXPECT_NE(killed.exit_code, 0) << said(killed);
  EXPECT_LT(killed.seconds, 30);
}

}  // namespace
}  // namespace lockstep::testing::ipc_test
