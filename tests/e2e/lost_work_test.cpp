// Bugs that lost work, or reported success for lost work: rows A of tests/attacks.md and others.
#include <limits>
#include <regex>

#include <gmock/gmock.h>
#include <signal.h>

#include "core/safetensors.h"
#include "tests/e2e/training_runs.h"

namespace lockstep::testing::lost_work_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// The directory of the first run is removed while it trains; meanwhile a second run begins there.
TEST(RemovedRunDirectory, ARunWhoseDirectoryWasRemovedKeepsItsWeightsAndTheNextOnes) {
  const TempDir dir;
  const std::string run = (dir / "run").string();
  const std::string script =
      "set -eu\n"
      "LOCKSTEP_FAULT=slow:rank=0,ms=300 \"$1\" -o \"$2\" --max-steps 10 "
      "--save-steps 5 >\"$2.log\" 2>&1 &\n"
      "until [ -e \"$2/checkpoints/last.safetensors\" ]; do sleep 0.05; done\n"
      "rm -rf \"$2\" || rm -rf \"$2\"\n"
      "\"$1\" -o \"$2\" --max-steps 2 >/dev/null\n"
      "wait $!\n";
  const ProgramResult result =
      run_program({"bash", "-c", script, "bash", path_of_program("train_convnet"), run});
  const std::string said_first = read_text(run + ".log");
  ASSERT_EQ(result.exit_code, 0) << said(result) << said_first;
  EXPECT_EQ(read_json(dir / "run" / "run.json").at("exit_code"), 0);
  EXPECT_EQ(fs::read_symlink(weights(dir / "run")), "step0000002.safetensors");
  EXPECT_THAT(said_first, HasSubstr(run + " was removed: this run goes on in " + run + "-2"));
  EXPECT_EQ(read_json(dir / "run-2" / "run.json").at("exit_code"), 0);
  EXPECT_EQ(fs::read_symlink(weights(dir / "run-2")), "step0000010.safetensors");
}

TEST(SlowSave, ASaveThatTakesLongerThanTheDeadlineIsWaitedFor) {
  const TempDir dir;
  for (const char* transport : {"shm", "mpi"}) {
    const fs::path run = dir / transport;
    const Arguments more = {
        "--max-steps", "4", "--stall-abort", "1", "--no-eval", "--transport", transport};
    const ProgramResult result =
        run_ranks(3,
                  convnet(run, more),
                  {.environment = {{"LD_PRELOAD", path_of_program("slow_fsync.so")},
                                   {"SLOW_FSYNC_MS", "900"}}});
    ASSERT_EQ(result.exit_code, 0) << said(result);
    EXPECT_EQ(fs::read_symlink(weights(run)), "step0000004.safetensors");
    EXPECT_EQ(count_of(result.err, "note: rank 0 is still saving a checkpoint; the other ranks"), 1)
        << result.err;
  }
}

TEST(ResumeWithoutState, ResumingWithoutStateFilesRemovesNoWeights) {
  const TempDir dir;
  const Arguments line = convnet(dir / "run", {"--max-steps", "4", "--save-steps", "2"});
  ASSERT_EQ(run_program(line).exit_code, 0);
  const fs::path folder = dir / "run" / "checkpoints";
  for (const char* file : {"step0000002", "step0000004"}) {
    fs::remove(folder / (std::string(file) + ".state.safetensors"));
  }
  const std::string best = read_text(folder / "best.safetensors");
  const std::string record = read_text(dir / "run" / "run.json");
  const ProgramResult result =
      run_program(convnet(dir / "run", {"--max-steps", "8", "--resume", "auto"}));
  EXPECT_EQ(result.exit_code, 4) << said(result);
  EXPECT_THAT(result.err, HasSubstr("its checkpoints hold models alone"));
  for (const char* file : {"step0000002.safetensors", "step0000004.safetensors"}) {
    EXPECT_TRUE(fs::exists(folder / file)) << file;
    fs::remove(folder / file);
  }
  EXPECT_EQ(read_text(dir / "run" / "run.json"), record);
  const ProgramResult again =
      run_program(convnet(dir / "run", {"--max-steps", "2", "--resume", "auto"}));
  EXPECT_EQ(again.exit_code, 0) << said(again);
  EXPECT_EQ(read_text(folder / "best.earlier-1.safetensors"), best);
}

TEST(NonFiniteWeights, WeightsThatAreNotFiniteAreNamedWithExit6) {
  const TempDir dir;
  ASSERT_EQ(run_program(convnet(dir / "run", {"--max-steps", "2"})).exit_code, 0);
  Safetensors content = read_safetensors(weights(dir / "run"));
  content.tensors.at("fc.weight").data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  write_safetensors(dir / "nan.safetensors", content);
  const auto evaluate = [&](int ranks, const fs::path& file, const std::string& out) {
    return run_ranks(ranks, convnet(dir / out, {"-e", "--pretrained", file.string()}));
  };
  for (const int ranks : {1, 2}) {
    const ProgramResult result =
        evaluate(ranks, dir / "nan.safetensors", "nan" + std::to_string(ranks));
    EXPECT_EQ(result.exit_code, 6) << said(result);
    EXPECT_EQ(count_of(result.err, "the weights are not finite: their accuracy means nothing"), 1);
    EXPECT_THAT(result.err, HasSubstr("fc.weight: 1 of "));
  }
  EXPECT_EQ(read_json(dir / "nan1" / "run.json").at("exit_code"), 6);
  const ProgramResult sound = evaluate(1, weights(dir / "run"), "sound");
  EXPECT_EQ(sound.exit_code, 0) << said(sound);
  EXPECT_THAT(sound.err, Not(HasSubstr("not finite")));
}

TEST(Overwrite, AStartThatIsRefusedKeepsTheEarlierRun) {
  const TempDir dir;
  ASSERT_EQ(run_program(convnet(dir / "run", {"--max-steps", "2"})).exit_code, 0);
  const std::string before = read_text(weights(dir / "run"));
  const std::string missing = (dir / "missing/x").string();
  const Arguments refused[] = {
      {"--csv", missing + ".csv"},
      {"-e", "--pretrained", weights(dir / "run"), "--save-logits", missing + ".safetensors"}};
  for (const Arguments& more : refused) {
    Arguments line = convnet(dir / "run", more);
    line.push_back("--overwrite");
    const ProgramResult result = run_program(line);
    EXPECT_EQ(result.exit_code, 5) << said(result);
    EXPECT_EQ(read_text(weights(dir / "run")), before);
    EXPECT_EQ(read_json(dir / "run/run.json").at("exit_code"), 0);
    EXPECT_FALSE(read_metrics(dir / "run").empty());
  }
}

// Steps take 0.3 s, and the ranks exchange figures every ten steps. Only one rank gets the signal.
TEST(StopSignal, ASignalStopsTheRanksAfterTheStepInHand) {
  const TempDir dir;
  const ProgramResult result =
      run_ranks(2,
                convnet(dir / "run", {"--max-steps", "200", "--print-freq", "100"}),
                {.environment = {{"LOCKSTEP_FAULT", "slow:rank=1,ms=300"}},
                 .signal = SIGUSR1,
                 .signal_after = "Epoch: [0]["});
  ASSERT_EQ(result.exit_code, 43) << said(result);
  std::smatch stop;
  const std::string all = result.out + result.err;
  ASSERT_TRUE(std::regex_search(all, stop, std::regex(R"(stopped on a signal after step (\d+))")));
  EXPECT_LE(std::stoi(stop[1]), 3) << said(result);
}

}  // namespace
}  // namespace lockstep::testing::lost_work_test
