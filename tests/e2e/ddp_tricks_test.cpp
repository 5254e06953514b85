// Tutorial 000 with its own flags: what its script prints and which files it leaves. Its other
// items are tested elsewhere:
//   0.1   same_bits_test.cpp, tests/comm/same_bits_test.cpp
//   0.2   tests/data/distributed_sampler_test.cpp, mnist_test.cpp
//   0.4   tests/nn/models_test.cpp
//   0.5   tests/kernels, tests/nn/models_test.cpp: five steps compared with PyTorch
//   0.6   tests/nn/optimizer_test.cpp
//   0.7   optimizers_test.cpp
//   0.8   flags may be given in any order
//   0.9   loss_scale_test.cpp
//   0.10  tests/trainers/precision_config_test.cpp: softmax and loss are f32
//   0.12  tests/trainers/schedule_test.cpp
//   0.13, 0.14, 0.15  tests/trainers/schedule_test.cpp; the warning: flag_advice_test.cpp
//   0.18  tests/trainers/tutorial_spelling_test.cpp
//   0.22  tests/long/ddp_tricks_curve.sh
//   0.23  TwoRunsAtOnce below
//   0.24  ranks_test.cpp
//   0.25  tests/trainers/progress_test.cpp
#include <filesystem>
#include <future>
#include <regex>

#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"

namespace lockstep::testing::ddp_tricks_test {
namespace {

// Epochs of three steps with 32 images in two groups, as two ranks have them. A small network and
// f32 save time.
class DdpTricks : public ::testing::Test {
 protected:
  void SetUp() override { write_small_mnist(dir_ / "mnist", 90, 40); }

  Arguments line(const std::string& name, const Arguments& more = {}) const {
    Arguments words = {"train_convnet", "--preset", "ddp-tricks"};
    words.insert(words.end(), {"-d", (dir_ / "mnist").string(), "--dataset", "mnist"});
    words.insert(words.end(), {"-en=" + name, "-p", dir_.path().string(), "-a", "convnet"});
    words.insert(words.end(), {"--opt-level", "O0", "--global-batch-size", "32", "-w", "1"});
    words.insert(words.end(), {"--shards", "2", "--bn-groups", "2", "--print-freq", "1"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void run(const std::string& name, const Arguments& more) const {
    const ProgramResult result = run_program(line(name, more));
    ASSERT_EQ(result.exit_code, 0) << said(result);
  }
  std::string digest(const std::string& name) const {
    return read_json(dir_ / name / "run.json").at("digest");
  }

  const TempDir dir_;
};

// With this delta, no epoch after the first is an improvement.
const Arguments kStopsAfterTwo = {
    "-e", "5", "--early-stopping", "1", "--early-stopping-delta", "100"};

// Item 0.19, and the message of item 0.16. Item 0.3: all test images count, on any number of ranks.
TEST_F(DdpTricks, PrintsTheScriptsLinesAndNothingElse) {
  const std::string epoch =
      R"(, time: \d+\.\d\ds, learning_rate: (0\.0|0\.1), train_loss: 0\.\d{4}, train_acc: )"
      R"([01]\.\d{4}, valid_loss: \d+\.\d{4}, valid_acc: [01]\.\d{4})";
  for (const int ranks : {1, 2}) {
    const std::string name = "on" + std::to_string(ranks);
    const ProgramResult result = run_ranks(ranks, line(name, kStopsAfterTwo));
    ASSERT_EQ(result.exit_code, 0) << said(result);
    std::string lines = "Running DDP on rank: 0\n";
    if (ranks == 2) lines += "Running DDP on rank: 1\n";
    lines += "Now Training: " + name + "\nepoch: 000/5" + epoch + "\nepoch: 001/5" + epoch +
             "\nEarlyStopping\n";
    EXPECT_TRUE(std::regex_match(result.out, std::regex(lines))) << result.out;
    EXPECT_EQ(read_json(dir_ / name / "run.json").at("final").at("total"), 40);
    EXPECT_EQ(count_of(result.err, name + "/checkpoints/best.safetensors (there: "), 1);
  }
  expect_same_bits(dir_ / "on1", dir_ / "on2");
}

TEST_F(DdpTricks, Item0_21CurvesLieInTheFoldersOfTheScript) {
  const ProgramResult result = run_ranks(2, line("curves", {"-e", "2"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  for (const auto& [folder, tag] : {std::pair{".", "LR"},
                                    {"Loss_train", "Loss"},
                                    {"Loss_valid", "Loss"},
                                    {"Acc_train", "Acc"},
                                    {"Acc_valid", "Acc"}}) {
    EXPECT_EQ(count_of(events_in(dir_ / "curves" / folder), tag), 2) << folder;
  }
}

// Item 0.16: the loop ends before that epoch saves the best weights.
TEST_F(DdpTricks, EarlyStoppingLeavesTheBestOfTheEpochsBefore) {
  run("stopped", kStopsAfterTwo);
  run("first", {"-e", "1"});
  const nlohmann::json record = read_json(dir_ / "stopped" / "run.json");
  EXPECT_EQ(record.at("early_stop_epoch"), 1);
  EXPECT_EQ(record.at("exit_code"), 0);
  EXPECT_TRUE(read_json(dir_ / "first" / "run.json").at("early_stop_epoch").is_null());
  const auto best = [&](const char* name) {
    return (dir_ / name / "checkpoints" / "best.safetensors").string();
  };
  const ProgramResult same = run_program({"lockstep", "diff", best("stopped"), best("first")});
  EXPECT_EQ(same.exit_code, 0) << said(same);
  EXPECT_EQ(read_metrics(dir_ / "stopped").back().at("epoch"), 1);
}

// The first epoch has rate 0, so that the second one is better.
TEST_F(DdpTricks, ElsewhereTheEpochThatStopsTheRunMayBeTheBest) {
  Arguments flags = kStopsAfterTwo;
  flags.insert(flags.end(), {"--early-stopping-best", "--save-freq", "99", "--json"});
  const ProgramResult result = run_program(line("counted", flags));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(read_json(dir_ / "counted" / "run.json").at("early_stop_epoch"), 1);
  const nlohmann::json summary = nlohmann::json::parse(result.out);
  EXPECT_EQ(summary.at("best").at("epoch"), 1);
  EXPECT_EQ(summary.at("best").at("acc1"), summary.at("final").at("acc1"));
  const ProgramResult same = run_program({"lockstep",
                                          "diff",
                                          (dir_ / "counted/checkpoints/best.safetensors").string(),
                                          weights(dir_ / "counted")});
  EXPECT_EQ(same.exit_code, 0) << said(same);
}

TEST_F(DdpTricks, EarlyStoppingSavesTheLastWeightsToo) {
  Arguments flags = kStopsAfterTwo;
  flags.insert(flags.end(), {"--save-freq", "99"});
  run("rare", flags);
  EXPECT_TRUE(std::filesystem::exists(weights(dir_ / "rare")));
}

TEST_F(DdpTricks, EarlyStoppingGoesThroughCheckpoints) {
  run("whole", {"-e", "6", "--early-stopping", "2", "--early-stopping-delta", "100"});
  EXPECT_EQ(read_json(dir_ / "whole" / "run.json").at("early_stop_epoch"), 2);
  const Arguments flags = {"-e", "6", "--early-stopping", "2", "--early-stopping-delta", "100"};
  Arguments begin = flags;
  begin.insert(begin.end(), {"--max-steps", "7"});  // in the third epoch
  run("parts", begin);
  Arguments resume = flags;
  resume.insert(resume.end(), {"--resume", "auto"});
  const ProgramResult resumed = run_ranks(2, line("parts", resume));
  ASSERT_EQ(resumed.exit_code, 0) << said(resumed);
  EXPECT_EQ(count_of(resumed.out, "EarlyStopping\n"), 1) << resumed.out;
  EXPECT_EQ(count_of(resumed.err, "bits may differ"), 0) << resumed.err;
  EXPECT_EQ(digest("parts"), digest("whole"));

  run("parts", resume);  // training has already stopped
  EXPECT_EQ(read_json(dir_ / "parts" / "run.json").at("early_stop_epoch"), 2);
  EXPECT_EQ(digest("parts"), digest("whole"));
  run("parts", {"-e", "6", "--early-stopping", "4", "--resume", "auto"});  // more patience
  EXPECT_NE(digest("parts"), digest("whole"));
}

// Item 0.20: losses are divided by the 16 images of a group. Item 0.11: a first epoch with rate 0
// changes only statistics.
TEST_F(DdpTricks, LossesAreDividedOnceMore) {
  run("divided", {"-e", "1"});
  run("plain", {"-e", "1", "--no-loss-div-batch"});
  const auto first_loss = [&](const char* name) {
    return read_metrics(dir_ / name).front().at("loss").get<double>();
  };
  EXPECT_NEAR(first_loss("divided"), first_loss("plain") / 16, 1e-6 * first_loss("plain"));
  const auto test_loss = [&](const char* name) {
    return read_json(dir_ / name / "run.json").at("final").at("loss").get<double>();
  };
  EXPECT_NEAR(test_loss("divided"), test_loss("plain") / 40, 1e-9);  // of one batch
  run("trained", {"-e", "1", "-w", "0"});
  EXPECT_NE(digest("trained"), digest("divided"));
  run("plainly_trained", {"-e", "1", "-w", "0", "--no-loss-div-batch"});
  EXPECT_NE(digest("trained"), digest("plainly_trained"));
}

// Item 0.17.
TEST_F(DdpTricks, OrderAndWeightsHaveSeedsOfTheirOwn) {
  const Arguments train = {"-e", "1", "-w", "0"};
  const auto with = [&](const std::string& name, const Arguments& seeds) {
    Arguments flags = train;
    flags.insert(flags.end(), seeds.begin(), seeds.end());
    run(name, flags);
    return digest(name);
  };
  const std::string tutorial = with("a", {});
  EXPECT_EQ(with("b", {"-s", "1", "--seed-order", "0", "--seed-weights", "42"}), tutorial);
  EXPECT_NE(with("c", {"--seed-order", "42"}), tutorial);
  EXPECT_NE(with("d", {"-s", "1"}), tutorial);
  const nlohmann::json record = read_json(dir_ / "b" / "run.json");
  EXPECT_EQ(record.at("seed"), 1);
  EXPECT_EQ(record.at("seed_order"), 0);
  EXPECT_EQ(record.at("seed_weights"), 42);
  const ProgramResult refused =
      run_program(line("b", {"-e", "2", "-w", "0", "--seed-order", "5", "--resume", "auto"}));
  EXPECT_EQ(refused.exit_code, 4) << said(refused);
  const ProgramResult kept =
      run_program(line("b", {"-e", "2", "-w", "0", "-s", "1", "--resume", "auto"}));
  EXPECT_EQ(kept.exit_code, 0) << said(kept);
  EXPECT_EQ(read_json(dir_ / "b" / "run.json").at("seed_weights"), 42);
}

// Item 0.14: with verbose=True, a cut of the rate is printed.
TEST_F(DdpTricks, ACutOfTheRateIsToldAndAMetricThatImprovesTheOtherWayIsWarnedOf) {
  const ProgramResult result = run_program(line("cut",
                                                {"-e",
                                                 "4",
                                                 "--plateau-on",
                                                 "acc",
                                                 "--plateau-mode",
                                                 "min",
                                                 "--plateau-patience",
                                                 "0",
                                                 "--plateau-threshold",
                                                 "1"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(count_of(result.out,
                     "Epoch     1: reducing learning rate of group 0 to 1.0000e-02.\nepoch: 001"),
            1)
      << result.out;
  EXPECT_EQ(count_of(result.err, "lockstep: warning: --plateau-on acc improves upwards"), 1)
      << result.err;
}

// Item 0.23: no port has to be chosen.
TEST_F(DdpTricks, TwoRunsAtOnce) {
  const auto start = [&](const char* name) {
    return std::async(std::launch::async,
                      [this, name] { return run_ranks(2, line(name, {"-e", "1"})).exit_code; });
  };
  auto one = start("one");
  auto other = start("other");
  EXPECT_EQ(one.get(), 0);
  EXPECT_EQ(other.get(), 0);
  EXPECT_EQ(digest("one"), digest("other"));
}

// Item 0.13: the correct form of the schedule is --lr-scheduler cosine.
TEST_F(DdpTricks, RatesAreTheScripts) {
  const auto rates = [&](const Arguments& more) {
    Arguments words = line("dry", {"-w", "10", "-e", "500", "--lr-dry-run"});
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words).out;
  };
  const std::string frozen = rates({"-t", "cosine"});
  for (const char* rate : {"epoch 0 step 1 lr 0 to step 3 lr 0\n",
                           "epoch 1 step 4 lr 0.01 to",
                           "epoch 10 step 31 lr 0.1 to",
                           "epoch 11 step 34 lr 0.0999989",
                           "epoch 499 step 1498 lr 0.0999989",
                           "--early-stopping 50 may end it early"}) {
    EXPECT_EQ(count_of(frozen, rate), 1) << rate;
  }
  EXPECT_EQ(count_of(rates({"--lr-scheduler", "cosine"}), "epoch 499 step 1498 lr 1.02"), 1);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "dry"));
}

}  // namespace
}  // namespace lockstep::testing::ddp_tricks_test
