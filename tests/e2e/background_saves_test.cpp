// Saves in the background of a training, on a slow disk.
#include <gmock/gmock.h>
#include <signal.h>

#include "tests/e2e/training_runs.h"

namespace lockstep::testing::background_saves_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Each file of a checkpoint takes 0.6 s, each step 0.15 s.
const ProgramOptions kSlow = {.environment = {{"LD_PRELOAD", path_of_program("slow_fsync.so")},
                                              {"SLOW_FSYNC_MS", "600"},
                                              {"LOCKSTEP_FAULT", "slow:rank=0,ms=150"}}};

void expect_same_files(const fs::path& want, const fs::path& got, const std::string& step) {
  for (const char* kind : {".safetensors", ".state.safetensors"}) {
    const std::string name = step + kind;
    const ProgramResult difference = run_program({"lockstep",
                                                  "diff",
                                                  (want / "checkpoints" / name).string(),
                                                  (got / "checkpoints" / name).string()});
    EXPECT_EQ(difference.exit_code, 0) << said(difference);
  }
}

TEST(BackgroundSaves, RanksGoOnMeanwhileToTheSameBits) {
  const TempDir dir;
  const Arguments saving = {"--save-steps", "10", "--stall-abort", "1", "--no-eval"};
  const ProgramResult slow = run_ranks(2, convnet(dir / "slow", saving), kSlow);
  ASSERT_EQ(slow.exit_code, 0) << said(slow);
  EXPECT_EQ(count_of(slow.err, "note: rank 0 is still saving a checkpoint; the other ranks"), 1)
      << "at the end alone: " << slow.err;
  for (const char* steps : {"10", "20"}) {
    const ProgramResult plain =
        run_ranks(2, convnet(dir / steps, {"--max-steps", steps, "--no-eval"}));
    ASSERT_EQ(plain.exit_code, 0) << said(plain);
    expect_same_files(dir / steps, dir / "slow", std::string("step00000") + steps);
  }
}

TEST(BackgroundSaves, AStopMeanwhileLeavesBothCheckpoints) {
  const TempDir dir;
  ProgramOptions options = kSlow;
  options.signal = SIGUSR1;
  options.signal_after = "Epoch: [0][ 11/";
  const ProgramResult result = run_program(
      convnet(dir / "run",
              {"--max-steps", "200", "--save-steps", "10", "--print-freq", "1", "--no-eval"}),
      options);
  ASSERT_EQ(result.exit_code, 43) << said(result);
  EXPECT_THAT(result.err, HasSubstr("; --resume goes on from there"));
  const fs::path last = fs::read_symlink(weights(dir / "run"));
  EXPECT_GT(last.string(), "step0000010.safetensors");
  for (const std::string& step : {std::string("step0000010"), last.stem().string()}) {
    expect_same_files(dir / "run", dir / "run", step);
  }
}

// A save of step 4 is in progress when the fault happens. The files it writes are sound, and it is
// completed.
ProgramOptions slow_disk_and(const char* fault) {
  return {.environment = {{"LD_PRELOAD", path_of_program("slow_fsync.so")},
                          {"SLOW_FSYNC_MS", "600"},
                          {"LOCKSTEP_FAULT", fault}}};
}
const Arguments kSaveOnce = {
    "--max-steps", "400", "--save-steps", "4", "--check-ranks", "1", "--no-eval"};

TEST(BackgroundSaves, WeightsThatDifferMeanwhileAreNotSaved) {
  const TempDir dir;
  const ProgramResult result =
      run_ranks(3, convnet(dir / "run", kSaveOnce), slow_disk_and("flipbit:rank=1,step=6"));
  ASSERT_EQ(result.exit_code, 6) << said(result);
  EXPECT_EQ(fs::read_symlink(weights(dir / "run")), "step0000004.safetensors");
  expect_same_files(dir / "run", dir / "run", "step0000004");
}

TEST(BackgroundSaves, ARankThatIsLostMeanwhileLeavesTheCheckpoint) {
  const TempDir dir;
  Arguments line = convnet(dir / "run", kSaveOnce);
  line.insert(line.end(), {"--dist-url", "file://" + (dir / "meet").string()});
  line.insert(line.begin(), {"bash", "-c", R"("$@" --rank 1 & exec "$@" --rank 0)", "bash"});
  line.insert(line.end(), {"--world-size", "2"});
  line[4] = path_of_program("train_convnet");
  const ProgramResult result = run_program(line, slow_disk_and("kill:rank=1,step=6"));
  ASSERT_EQ(result.exit_code, 75) << said(result);
  EXPECT_EQ(fs::read_symlink(weights(dir / "run")), "step0000004.safetensors");
  expect_same_files(dir / "run", dir / "run", "step0000004");
}

}  // namespace
}  // namespace lockstep::testing::background_saves_test
