// One rank: what a run prints, and which files it leaves.
#include <regex>

#include <signal.h>

#include "tests/e2e/training_runs.h"

namespace lockstep::testing::train_test {
namespace {

TEST(Train, LeavesItsRecord) {
  const TempDir dir;
  const ProgramResult result = run_program(
      convnet(dir / "run", {"--dataset", "digits", "--seed", "3", "--max-steps", "100"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_NE(result.out.find("same bits on"), std::string::npos);
  EXPECT_TRUE(std::regex_search(result.out, std::regex(R"(\nAccuracy is \d+\.\d\d%\n)")));

  const nlohmann::json record = read_json(dir / "run" / "run.json");
  const nlohmann::json& final = record.at("final");
  EXPECT_EQ(final.at("total"), 10000);
  EXPECT_GT(final.at("correct").get<int>(), 1500);  // better than chance
  EXPECT_NEAR(final.at("acc1").get<double>(), final.at("correct").get<double>() / 100, 1e-9);
  for (const char* name : {"acc5", "loss", "images_per_s", "wall_s", "first_step_s"}) {
    EXPECT_GT(final.at(name).get<double>(), 0) << name;
  }
  EXPECT_EQ(record.at("exit_code"), 0);
  EXPECT_EQ(record.at("seed"), 3);
  EXPECT_EQ(record.at("digest").get<std::string>().size(), 16U);

  const std::string metrics = read_text(dir / "run" / "metrics.jsonl");
  EXPECT_EQ(count_of(metrics, R"("split":"train")"), 11);  // steps 1, 10, 20, ... 100
  EXPECT_EQ(count_of(metrics, R"("split":"val")"), 1);

  const std::string file = weights(dir / "run");
  EXPECT_EQ(run_program({"lockstep", "diff", file, file}).exit_code, 0);
  EXPECT_NE(run_program({"lockstep", "inspect", file}).out.find("layer1.0.weight"),
            std::string::npos);
}

TEST(Train, TwoRunsHaveTheSameBitsAndAnotherSeedHasOthers) {
  const TempDir dir;
  ASSERT_EQ(run_program(convnet(dir / "a")).exit_code, 0);
  ASSERT_EQ(run_program(convnet(dir / "b", {"-j", "0", "-q"})).exit_code, 0);
  ASSERT_EQ(run_program(convnet(dir / "c", {"--seed", "2"})).exit_code, 0);
  EXPECT_EQ(run_program({"lockstep", "diff", weights(dir / "a"), weights(dir / "b")}).exit_code, 0);
  EXPECT_EQ(run_program({"lockstep", "diff", weights(dir / "a"), weights(dir / "c")}).exit_code, 1);
}

TEST(Train, DemoPresetPrintsTheTutorialsLinesAndNothingElse) {
  for (const char* preset : {"demo-baseline", "demo-ddp"}) {
    const TempDir dir;
    const ProgramResult result =
        run_program(convnet(dir / "run", {"--preset", preset, "--epochs", "1"}));
    EXPECT_EQ(result.exit_code, 0) << said(result);
    const std::regex lines(
        "begin training of epoch 1/1\nbegin testing\nAccuracy is \\d+\\.\\d\\d%\n"
        "\ntime elapsed: (\\d+\\.\\d\\d) seconds\n");
    std::smatch seconds;
    ASSERT_TRUE(std::regex_match(result.out, seconds, lines)) << result.out;
    const auto record = nlohmann::json::parse(read_text(dir / "run" / "run.json"));
    EXPECT_NEAR(std::stod(seconds[1]), record.at("final").at("wall_s"), 0.01);
  }
}

TEST(Train, RefusesToWriteOverARun) {
  const TempDir dir;
  ASSERT_EQ(run_program(convnet(dir / "run")).exit_code, 0);
  const std::string before = read_text(dir / "run" / "run.json");
  const ProgramResult again = run_program(convnet(dir / "run"));
  EXPECT_EQ(again.exit_code, 2) << said(again);
  EXPECT_EQ(count_of(again.err, "--overwrite"), 1) << again.err;
  EXPECT_EQ(read_text(dir / "run" / "run.json"), before);
  EXPECT_EQ(run_program(convnet(dir / "run", {"--overwrite"})).exit_code, 0);
}

TEST(Train, SignalSavesAndExits43) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const TempDir dir;
    const ProgramResult result =
        run_program({"train_convnet", "--epochs", "1000", "-o", (dir / "run").string()},
                    {.signal = signal, .signal_after = "Epoch: [0][ 10"});
    EXPECT_EQ(result.exit_code, 43) << said(result);
    EXPECT_EQ(read_json(dir / "run" / "run.json").at("exit_code"), 43);
    EXPECT_EQ(run_program({"lockstep", "inspect", weights(dir / "run")}).exit_code, 0);
  }
}

TEST(Train, DivergenceEndsWithExit6) {
  const TempDir dir;
  const ProgramResult result =
      run_program(convnet(dir / "run"), {.environment = {{"LOCKSTEP_FAULT", "nan:rank=0,step=5"}}});
  EXPECT_EQ(result.exit_code, 6) << said(result);
  EXPECT_NE(result.err.find("the loss is nan at step 6 (epoch 1)"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace lockstep::testing::train_test
