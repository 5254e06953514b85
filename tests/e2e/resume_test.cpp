// Runs that were killed, stopped or short of disk space continue: on another number of ranks, in
// the middle of an epoch, and with the bits of an undisturbed run.
#include <regex>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"
#include "tests/support/golden.h"

namespace lockstep::testing::resume_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// Three epochs of ten steps, in which the last step of each epoch is not full.
class Resume : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    write_small_mnist(*dir_ / "mnist", 620, 100);
    has_base_ = false;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }

  static Arguments line(const std::string& name, const Arguments& more) {
    Arguments line = {"train_convnet", (*dir_ / "mnist").string(), "--dataset", "mnist"};
    line.insert(line.end(), {"--epochs", "3", "--global-batch-size", "64", "--shards", "8"});
    line.insert(line.end(), {"--bn-groups", "4", "--lr-scheduler", "cosine", "--print-freq", "1"});
    if (!name.empty()) line.insert(line.end(), {"-o", path(name).string()});
    line.insert(line.end(), more.begin(), more.end());
    return line;
  }
  static ProgramResult run(int ranks,
                           const std::string& name,
                           const Arguments& more = {},
                           const std::string& fault = "") {
    const ProgramOptions options{.environment = {{"LOCKSTEP_FAULT", fault}}};
    if (ranks == 1) return run_program(line(name, more), options);
    return run_ranks(ranks, line(name, more), options);
  }
  // Trains the undisturbed run, "base", for the first test that asks for it.
  static fs::path path(const std::string& name) {
    if (name == "base" && !std::exchange(has_base_, true)) {
      EXPECT_EQ(run(1, "base", {"--csv", path("base.csv")}).exit_code, 0);
    }
    return *dir_ / name;
  }
  static std::string checkpoint(const std::string& name, const std::string& file) {
    return (path(name) / "checkpoints" / file).string();
  }
  static void expect_as_base(const std::string& name) {
    expect_same_bits(path("base"), path(name));
    for (const char* file : {"step0000030.state.safetensors", "best.safetensors"}) {
      const ProgramResult difference =
          run_program({"lockstep", "diff", checkpoint("base", file), checkpoint(name, file)});
      EXPECT_EQ(difference.exit_code, 0) << file << "\n" << said(difference);
    }
  }
  static void copy_base_to(const std::string& name) {
    fs::copy(
        path("base"), path(name), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }

  static inline TempDir* dir_ = nullptr;
  static inline bool has_base_ = false;
};

// The kills come in the middle of an epoch, at its last step, and in the first step after it. A
// save that is in progress at the kill may be complete or not.
TEST_F(Resume, KilledOnFourTwoAndOneRanks) {
  const Arguments save = {"--save-steps", "3", "--resume", "auto"};
  const ProgramResult first = run(4, "killed", save, "kill:rank=0,step=8");
  EXPECT_NE(first.exit_code, 0);
  EXPECT_THAT(first.err, HasSubstr("there is no checkpoint in "));
  const ProgramResult second = run(2, "killed", save, "kill:rank=1,step=10");
  EXPECT_THAT(second.out,
              AnyOf(HasSubstr("step0000006.safetensors' (epoch 0, step 6)"),
                    HasSubstr("step0000003.safetensors' (epoch 0, step 3)")))
      << said(second);
  const ProgramResult third = run(1, "killed", save, "kill:rank=0,step=21");
  EXPECT_EQ(third.exit_code, 128 + SIGKILL);
  EXPECT_THAT(third.out, AnyOf(HasSubstr("(epoch 0, step 9)"), HasSubstr("(epoch 0, step 6)")))
      << said(third);
  const ProgramResult last = run(4, "killed", save);
  ASSERT_EQ(last.exit_code, 0) << said(last);
  EXPECT_THAT(last.out, AnyOf(HasSubstr("(epoch 2, step 20)"), HasSubstr("(epoch 1, step 18)")));
  EXPECT_THAT(last.out, HasSubstr("\nEpoch: [2][ 1/10]"));
  expect_as_base("killed");
  EXPECT_THAT(read_json(path("killed") / "run.json").at("resumed").at("step").get<int>(),
              AnyOf(20, 18));
}

TEST_F(Resume, MidEpochLogLinesGoOn) {
  ASSERT_EQ(run(1, "short", {"--max-steps", "14"}).exit_code, 0);
  const ProgramResult result = run(1, "short", {"--resume", path("short").string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_THAT(result.out, HasSubstr("(epoch 1, step 14)"));
  EXPECT_EQ(count_of(result.out, "Epoch: [1]["), 6);
  EXPECT_THAT(result.out, HasSubstr("\nEpoch: [1][ 5/10]"));
  const ProgramResult difference =
      run_program({"lockstep", "diff", weights(path("base")), weights(path("short"))});
  EXPECT_EQ(difference.exit_code, 0) << said(difference);
}

// The signal comes in the middle of an epoch, so no evaluation of that epoch may have an effect.
TEST_F(Resume, StoppedBySignal) {
  const ProgramResult stopped =
      run_program(line("stopped", {}),
                  {.environment = {{"LOCKSTEP_FAULT", "slow:rank=0,ms=40"}},
                   .signal = SIGTERM,
                   .signal_after = "Epoch: [1][ 3/10]"});
  EXPECT_EQ(stopped.exit_code, 43) << said(stopped);
  std::smatch step;
  ASSERT_TRUE(std::regex_search(
      stopped.err, step, std::regex(R"(after step (\d+); --resume goes on from there)")));
  const ProgramResult on = run(2, "stopped", {"--resume", "auto"});
  EXPECT_EQ(on.exit_code, 0) << said(on);
  EXPECT_THAT(on.out, HasSubstr("(epoch 1, step " + step.str(1) + ")"));
  for (const char* file : {"last.safetensors", "best.safetensors"}) {
    const ProgramResult difference =
        run_program({"lockstep", "diff", checkpoint("base", file), checkpoint("stopped", file)});
    EXPECT_EQ(difference.exit_code, 0) << file << "\n" << said(difference);
  }
}

TEST_F(Resume, MoreEpochsElsewhereCarryTheBestAlong) {
  ASSERT_EQ(run(1, "two", {"--epochs", "2"}).exit_code, 0);
  const std::string before = read_text(path("two") / "run.json");
  const ProgramResult result =
      run(2, "three", {"--resume", path("two").string(), "--max-steps", "20"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(read_text(path("two") / "run.json"), before);
  EXPECT_EQ(read_text(checkpoint("three", "best.safetensors")),
            read_text(checkpoint("two", "best.safetensors")));
  const nlohmann::json first = read_json(path("two") / "run.json").at("final");
  EXPECT_EQ(read_json(path("three") / "run.json").at("final").at("correct"), first.at("correct"));
}

// The next epoch makes the weights worse, so the best weights are those of an earlier process.
TEST_F(Resume, BestIsRememberedAndAChangedSettingNoted) {
  ASSERT_EQ(run(1, "spoiled", {"--max-steps", "20"}).exit_code, 0);
  const std::string best = read_text(checkpoint("spoiled", "best.safetensors"));
  const auto acc1 = read_json(path("spoiled") / "run.json").at("final").at("acc1").get<double>();
  const ProgramResult result = run(1, "spoiled", {"--resume", "auto", "--lr", "3"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  ASSERT_LT(read_json(path("spoiled") / "run.json").at("final").at("acc1").get<double>(), acc1);
  EXPECT_THAT(result.out, HasSubstr(fmt::format("\nbest {:.2f}% after epoch 2 ", acc1)));
  EXPECT_EQ(read_text(checkpoint("spoiled", "best.safetensors")), best);
  EXPECT_THAT(result.err, HasSubstr("note: lr is 3, was 0.02 in the checkpoint's run: bits may"));
}

// The best weights are of an evaluation after the checkpoint; with another rate the run may never
// be as good again.
TEST_F(Resume, BestOfALaterStepIsNotTheBestSoFar) {
  copy_base_to("later_best");
  for (const char* file : {"step0000030.safetensors", "step0000030.state.safetensors"}) {
    fs::remove(path("later_best") / "checkpoints" / file);
  }
  fs::copy_file(checkpoint("base", "step0000030.safetensors"),
                checkpoint("later_best", "best.safetensors"),
                fs::copy_options::overwrite_existing);
  const ProgramResult result = run(1, "later_best", {"--resume", "auto", "--lr", "1e-9", "--json"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_THAT(result.err, HasSubstr("it is of a later step; the next evaluation is the best so"));
  const ProgramResult test = run_program(line(
      "tested", {"-e", "--pretrained", checkpoint("later_best", "best.safetensors"), "--json"}));
  const auto best = nlohmann::json::parse(result.out).at("best");
  EXPECT_EQ(nlohmann::json::parse(test.out).at("final").at("acc1"), best.at("acc1")) << said(test);
}

// The signal comes in the last step of an epoch, so the continued run begins with the evaluation.
TEST_F(Resume, AnEvaluationThatComesFirstHasTheEpochsFigures) {
  const auto row = [](const std::string& name) {
    const std::string csv = read_text(path(name).string() + ".csv");
    const size_t begin = csv.find(",1,20,");  // of epoch 1, after step 20
    return csv.substr(begin, csv.find(',', begin + 30) - begin);
  };
  const Arguments more = {"--csv", path("stopped_late.csv").string()};
  const ProgramResult stopped =
      run_program(line("stopped_late", more),
                  {.environment = {{"LOCKSTEP_FAULT", "slow:rank=0,ms=300"}},
                   .signal = SIGTERM,
                   .signal_after = "Epoch: [1][ 9/10]"});
  ASSERT_EQ(stopped.exit_code, 43) << said(stopped);
  ASSERT_THAT(stopped.err, HasSubstr("after step 20;")) << said(stopped);
  ASSERT_EQ(run(1, "stopped_late", {"--csv", more[1], "--resume", "auto"}).exit_code, 0);
  EXPECT_EQ(row("stopped_late"), row("base"));
}

// The first process is killed before its first checkpoint.
TEST_F(Resume, ARunThatBeginsAgainReplacesItsCsv) {
  const Arguments more = {"--csv", path("begun.csv").string(), "--resume", "auto"};
  ASSERT_EQ(run(1, "begun", more, "kill:rank=0,step=12").exit_code, 137);
  fs::remove_all(path("begun") / "checkpoints");
  const ProgramResult again = run(1, "begun", more);
  ASSERT_EQ(again.exit_code, 0) << said(again);
  EXPECT_EQ(count_of(read_text(path("begun.csv")), "\n"), 1 + 3);
  const ProgramResult other = run(1, "other_run", more);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("it holds the epochs of another run"));
}

TEST_F(Resume, AnEvaluationLeavesTheRunsRecord) {
  copy_base_to("recorded");
  const std::string record = read_text(path("recorded") / "run.json");
  const std::string where = path("recorded").string();
  const ProgramResult refused = run(1, "recorded", {"-e", "--resume", where});
  EXPECT_EQ(refused.exit_code, 2) << said(refused);
  EXPECT_THAT(refused.err, HasSubstr("would replace the record of " + where));
  const ProgramResult evaluated = run(1, "recorded", {"-e", "--resume", "auto"});
  ASSERT_EQ(evaluated.exit_code, 0) << said(evaluated);
  EXPECT_EQ(read_text(path("recorded") / "run.json"), record);
  std::smatch found;
  const std::regex written("\nrecord  (runs/.*)/run.json\n");
  ASSERT_TRUE(std::regex_search(evaluated.out, found, written)) << said(evaluated);
  fs::remove_all(found[1].str());
}

TEST_F(Resume, PretrainedWeightsBesideACheckpointAreNotReadSilently) {
  Arguments both = {"--resume", path("base").string(), "--pretrained", "of_the_start.pt"};
  const ProgramResult resumed = run(1, "two_sources", both);
  EXPECT_EQ(resumed.exit_code, 0) << said(resumed);
  EXPECT_THAT(resumed.err, HasSubstr("note: --pretrained of_the_start.pt is not read"));
  both.emplace_back("-e");
  const ProgramResult result = run(1, "two_evaluated", both);
  EXPECT_EQ(result.exit_code, 2) << said(result);
  EXPECT_THAT(result.err, HasSubstr("--resume PATH and --pretrained contradict each other"));
}

TEST_F(Resume, LaterStepsAreNotRemovedUnasked) {
  copy_base_to("later_steps");
  const std::string older = checkpoint("later_steps", "step0000010.safetensors");
  const ProgramResult result = run(1, "later_steps", {"--resume", older});
  EXPECT_EQ(result.exit_code, 2) << said(result);
  EXPECT_THAT(result.err, HasSubstr("holds later steps, up to 30"));
  EXPECT_TRUE(fs::exists(checkpoint("later_steps", "step0000030.safetensors")));
}

TEST_F(Resume, TheBestOfLaterStepsIsNotTakenAlong) {
  const std::string older = checkpoint("base", "step0000010.safetensors");
  const ProgramResult result = run(1, "branch", {"--resume", older, "--max-steps", "20"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_THAT(result.err, HasSubstr("is not carried over: it is of a later step"));
  const ProgramResult same = run_program({"lockstep",
                                          "diff",
                                          checkpoint("branch", "best.safetensors"),
                                          checkpoint("branch", "step0000020.safetensors")});
  EXPECT_EQ(same.exit_code, 0) << said(same);
}

// A save in the middle of an epoch first compares the ranks' weights.
TEST_F(Resume, WeightsThatRanksDoNotShareAreNeverSaved) {
  const ProgramResult result =
      run(2, "torn", {"--save-steps", "4", "--check-ranks", "0"}, "flipbit:rank=1,step=6");
  EXPECT_EQ(result.exit_code, 6) << said(result);
  EXPECT_TRUE(fs::exists(checkpoint("torn", "step0000004.safetensors")));
  EXPECT_FALSE(fs::exists(checkpoint("torn", "step0000008.safetensors")));
}

TEST_F(Resume, WhatDiffersIsRefusedByName) {
  const std::string base = path("base").string();
  const auto refused = [&](int ranks, int code, const Arguments& more, const std::string& what) {
    Arguments arguments = {"--resume", base};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run(ranks, "refused", arguments);
    EXPECT_EQ(result.exit_code, code) << said(result);
    EXPECT_EQ(count_of(result.err, "lockstep: error: "), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(what));
    EXPECT_FALSE(fs::exists(path("refused")));
  };
  refused(1, 4, {"--shards", "4"}, "--shards is 4, the checkpoint's run has 8");
  refused(1, 4, {"--bn-groups", "8"}, "--bn-groups is 8, the checkpoint's run has 4");
  refused(2, 4, {"--seed", "2"}, "--seed is 2, the checkpoint's run has 1");
  refused(1, 4, {"-a", "toy_net"}, "--arch is toy_net, ");
  refused(1, 4, {"--momentum", "0"}, "momentum_buffer is not expected");
  refused(9, 2, {}, "9 ranks are too many");
  refused(1, 4, {"--resume", "no/such"}, "there is no checkpoint at no/such");
  write_small_mnist(path("other data"), 620, 90);
  const ProgramResult other = run_program(
      {"train_convnet", path("other data"), "--dataset", "mnist", "--resume", base, "-o", base});
  EXPECT_EQ(other.exit_code, 4) << said(other);
  EXPECT_THAT(other.err, HasSubstr("the data have digest "));
}

void flip_last_byte(const std::string& file) {
  std::string bytes = read_text(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 4);
  write_text(file, bytes);
}

TEST_F(Resume, DamageIsRefusedByPathAndPassedOverByAuto) {
  copy_base_to("damaged");
  flip_last_byte(checkpoint("damaged", "step0000030.safetensors"));
  const std::string torn = checkpoint("damaged", "step0000020.state.safetensors");
  fs::resize_file(torn, fs::file_size(torn) - 7);
  const ProgramResult by_path = run(1, "damaged", {"--resume", path("damaged").string()});
  EXPECT_EQ(by_path.exit_code, 4) << said(by_path);
  EXPECT_THAT(by_path.err, HasSubstr("step0000030.safetensors as a checkpoint\n  why: "));
  const ProgramResult automatic = run(2, "damaged", {"--resume", "auto"});
  EXPECT_EQ(automatic.exit_code, 0) << said(automatic);
  EXPECT_EQ(count_of(automatic.err, "note: skipped a checkpoint: "), 2) << automatic.err;
  EXPECT_THAT(automatic.out, HasSubstr("(epoch 1, step 10)"));
  expect_as_base("damaged");
}

TEST_F(Resume, AFullDiskStopsNoTraining) {
  ASSERT_EQ(run(1, "full", {"--max-steps", "10"}).exit_code, 0);
  Arguments limited = {"bash", "-c", R"(ulimit -f 64; exec "$@")", "bash"};
  Arguments program = line("full", {"--resume", "auto", "--save-steps", "5"});
  program[0] = path_of_program("train_convnet");
  limited.insert(limited.end(), program.begin(), program.end());
  const ProgramResult result = run_program(limited);
  EXPECT_EQ(result.exit_code, 5) << said(result);
  EXPECT_THAT(result.out, HasSubstr("Accuracy is "));
  EXPECT_THAT(result.err,
              HasSubstr("step0000015.safetensors of step 15 is not saved\n  why: cannot write"));
  EXPECT_THAT(
      result.err,
      HasSubstr("the newest sound checkpoint is " + checkpoint("full", "step0000010.safetensors")));
  EXPECT_EQ(read_json(path("full") / "run.json").at("exit_code"), 5);
  for (const auto& file : fs::directory_iterator(path("full") / "checkpoints")) {
    EXPECT_FALSE(file.path().filename().string().starts_with(".tmp.")) << file.path();
  }
  const ProgramResult after = run(1, "full", {"--resume", "auto"});
  EXPECT_EQ(after.exit_code, 0) << said(after);
  EXPECT_THAT(after.out, HasSubstr("(epoch 1, step 10)"));
  expect_as_base("full");
}

TEST_F(Resume, EvaluatesSavedWeightsAlikeOnAnyNumberOfRanks) {
  const nlohmann::json want = read_json(path("base") / "run.json");
  const std::string file = weights(path("base"));
  for (const int ranks : {1, 3}) {
    for (const Arguments& how :
         {Arguments{"-e", "--pretrained", file}, Arguments{"--test-only", "--resume", file}}) {
      const std::string name = how[0] + std::to_string(ranks);
      const ProgramResult result = run(ranks, name, how);
      EXPECT_EQ(result.exit_code, 0) << said(result);
      EXPECT_EQ(count_of(result.out, " * Acc@1 "), 1);
      EXPECT_EQ(count_of(result.out, "Epoch: "), 0);
      const nlohmann::json record = read_json(path(name) / "run.json");
      EXPECT_EQ(record.at("final").at("correct"), want.at("final").at("correct"));
      EXPECT_EQ(record.at("final").at("loss"), want.at("final").at("loss"));
      EXPECT_EQ(record.at("digest"), want.at("digest"));
    }
  }
}

TEST_F(Resume, PretrainedWeightsStartAnotherRun) {
  const ProgramResult result =
      run(2, "tuned", {"--pretrained", weights(path("base")), "--max-steps", "1", "--seed", "5"});
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_THAT(result.out, HasSubstr("=> using pre-trained model 'convnet' ("));
  EXPECT_GT(read_json(path("tuned") / "run.json").at("final").at("acc1").get<double>(), 30);
  const ProgramResult other =
      run(1, "mismatch", {"-a", "toy_net", "--pretrained", weights(path("base"))});
  EXPECT_EQ(other.exit_code, 4) << said(other);
  EXPECT_THAT(other.err, HasSubstr("--arch is toy_net, "));
}

TEST_F(Resume, StartEpochIsTheFirstOnesNumber) {
  const ProgramResult result = run(1, "later_start", {"--start-epoch", "2", "--epochs", "4"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(count_of(result.out, "Epoch: [2]["), 10);
  EXPECT_EQ(count_of(result.out, "Epoch: [3]["), 10);
  EXPECT_EQ(count_of(result.out, "Epoch: ["), 20);
  EXPECT_TRUE(fs::exists(checkpoint("later_start", "step0000040.safetensors")));
}

TEST_F(Resume, EvaluationsAndSavesAsOftenAsAsked) {
  const ProgramResult result =
      run(1, "rare", {"--eval-freq", "2", "--save-freq", "2", "--keep", "9"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(count_of(result.out, " * Acc@1 "), 2);  // after epoch 2 and after epoch 3, the last
  EXPECT_FALSE(fs::exists(checkpoint("rare", "step0000010.safetensors")));
  EXPECT_TRUE(fs::exists(checkpoint("rare", "step0000020.safetensors")));
  EXPECT_TRUE(fs::exists(checkpoint("rare", "step0000030.safetensors")));
}

TEST(ResumeOfFormat1, GoesOnWithAFileOfAnEarlierVersion) {
  const TempDir dir;
  const std::string golden = (golden_folder() / "checkpoint_v1/step0000001.safetensors").string();
  const ProgramResult result = run_program(
      {"train_convnet", "--resume", golden, "--max-steps", "2", "-o", (dir / "run").string()});
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_THAT(result.out, HasSubstr("(epoch 0, step 1)"));
  EXPECT_THAT(result.out, HasSubstr("Epoch: [0][2/2]"));
}

}  // namespace
}  // namespace lockstep::testing::resume_test
