// A run's output for programs and the contents of its files: JSON, TensorBoard's events, no host
// names.
#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "tests/e2e/training_runs.h"
#include "tests/support/event_reader.h"

namespace lockstep::testing::outputs_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST(Outputs, JsonIsAloneOnStandardOutput) {
  const TempDir dir;
  const ProgramResult result = run_ranks(
      2, convnet(dir / "run", {"--json", "--progress", "json", "--preset", "demo-baseline"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const json summary = json::parse(result.out);
  const json record = read_json(dir / "run" / "run.json");
  EXPECT_EQ(count_of(result.out, "\n"), 1);
  EXPECT_EQ(summary.at("run_dir"), (dir / "run").string());
  EXPECT_EQ(summary.at("ranks"), 2);
  EXPECT_EQ(summary.at("steps"), 20);
  for (const char* name : {"final", "digest", "exit_code"}) {
    EXPECT_EQ(summary.at(name), record.at(name)) << name;
  }
  EXPECT_EQ(count_of(result.err, R"({"split":"train")"), 3) << result.err;
  EXPECT_TRUE(summary.at("error").is_null());
}

// Standard output holds one JSON object however the run ends. The three lines of an error go to
// standard error.
TEST(Outputs, JsonTellsOfAnError) {
  const TempDir dir;
  const auto error_of = [](const ProgramResult& result, int exit_code) {
    EXPECT_EQ(result.exit_code, exit_code) << said(result);
    EXPECT_EQ(count_of(result.out, "\n"), 1) << said(result);
    const json summary = json::parse(result.out, nullptr, false);
    EXPECT_TRUE(summary.is_object()) << said(result);
    if (!summary.is_object()) return json::object();
    EXPECT_EQ(summary.at("exit_code"), exit_code);
    EXPECT_EQ(count_of(result.err, summary.at("error").at("try").get<std::string>()), 1);
    return summary;
  };
  const json usage = error_of(run_program({"train_convnet", "--json", "--epochs", "-1"}), 2);
  EXPECT_EQ(usage.at("error").at("what"), "bad value: --epochs -1");
  EXPECT_TRUE(usage.at("run_dir").is_null());
  const json data =
      error_of(run_ranks(2, convnet(dir / "a", {"--json", "--data", (dir / "no").string()})), 3);
  EXPECT_EQ(data.at("error").at("rank"), 0);
  const json diverged =
      error_of(run_ranks(2, convnet(dir / "b", {"--json", "--lr", "1000", "--epochs", "1"})), 6);
  EXPECT_EQ(diverged.at("run_dir"), (dir / "b").string());
  const ProgramResult lost = run_ranks(2,
                                       convnet(dir / "c", {"--json", "--stall-abort", "5"}),
                                       {.environment = {{"LOCKSTEP_FAULT", "kill:rank=1,step=5"}}});
  EXPECT_EQ(count_of(lost.out, R"("exit_code":75,"error":{"what")"), 1) << said(lost);
  EXPECT_EQ(run_program({"train_convnet", "--epochs", "-1"}).out, "");
}

TEST(Outputs, ProgressAsJsonIsThatOfTheFile) {
  const TempDir dir;
  const ProgramResult result = run_program(convnet(dir / "run", {"--progress", "json"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(result.out, read_text(dir / "run" / "metrics.jsonl"));
}

TEST(Outputs, ATimeLimitSavesAndTheRunGoesOn) {
  const TempDir dir;
  const ProgramResult stopped = run_program(
      {"train_convnet", "--epochs", "100", "--time-limit", "1", "-o", (dir / "run").string()});
  EXPECT_EQ(stopped.exit_code, 43) << said(stopped);
  EXPECT_EQ(count_of(stopped.err, "stopped at --time-limit 1 after step "), 1) << stopped.err;
  const auto step = read_metrics(dir / "run").back().at("step").get<int64_t>();
  const ProgramResult resumed = run_program({"train_convnet",
                                             "--resume",
                                             "auto",
                                             "--max-steps",
                                             std::to_string(step + 5),
                                             "--epochs",
                                             "100",
                                             "--no-eval",
                                             "-o",
                                             (dir / "run").string()});
  EXPECT_EQ(resumed.exit_code, 0) << said(resumed);
}

// Only rank 0 writes. A continued run removes the events that it will write again.
TEST(Outputs, EventsStandOnceAfterAContinuation) {
  const TempDir dir;
  const Arguments often = {"--histograms", "10", "--print-freq", "5", "--save-steps", "10"};
  ASSERT_EQ(run_ranks(2, convnet(dir / "run", often)).exit_code, 0);
  for (const char* file : {"step0000020.safetensors", "step0000020.state.safetensors"}) {
    fs::remove(dir / "run" / "checkpoints" / file);
  }
  Arguments again = convnet(dir / "run", often);
  again.insert(again.end(), {"--resume", "auto", "--max-steps", "30"});
  const ProgramResult resumed = run_program(again);
  ASSERT_EQ(resumed.exit_code, 0) << said(resumed);
  const std::vector<ReadEvent> events = read_events(dir / "run");
  std::vector<int64_t> steps;
  for (const auto& [step, loss] : scalars_of(events, "train/loss")) steps.push_back(step);
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 5, 10, 15, 20, 25, 30}));
  std::map<std::string, int> count;
  for (const ReadEvent& event : events) {
    for (const auto& [tag, value] : event.values) ++count[tag];
  }
  EXPECT_EQ(count["weight/fc.weight"], 3);
  EXPECT_EQ(count["grad/layer1.0.bias"], 3);
  for (const char* once : {"train/images",
                           "run/flags/text_summary",
                           "_hparams_/session_start_info",
                           "_hparams_/session_end_info"}) {
    EXPECT_EQ(count[once], 1) << once;
  }
}

// A loss scale that is a power of two changes no bit of a gradient after it is divided out.
TEST(Outputs, HistogramsOfGradientsLackTheLossScale) {
  const TempDir dir;
  std::vector<std::string> gradients;
  for (const char* scale : {"1", "1024"}) {
    const ProgramResult result = run_program(
        convnet(dir / scale, {"--histograms", "20", "--no-eval", "--loss-scale", scale}));
    ASSERT_EQ(result.exit_code, 0) << said(result);
    for (const ReadEvent& event : read_events(dir / scale)) {
      const auto found = event.values.find("grad/fc.weight");
      if (found != event.values.end()) gradients.push_back(field(found->second, 5));
    }
  }
  ASSERT_EQ(gradients.size(), 2U);
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(Outputs, AnAnonymousRunNamesNoHost) {
  std::array<char, 256> name{};
  ASSERT_EQ(gethostname(name.data(), name.size() - 1), 0);
  const std::string host = fmt::format(" {} ", name.data());
  const TempDir dir;
  const ProgramResult result = run_ranks(2, convnet(dir / "run", {"--anonymous"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(read_json(dir / "run" / "run.json").at("ranks").at(1).at("host"), "host0");
  const std::string lock = read_text(dir / "run" / ".lock");
  EXPECT_EQ(count_of(lock, " on host0 since"), 1) << lock;
  EXPECT_EQ(count_of(lock, host), 0) << lock;
  int events = 0;
  for (const auto& file : fs::directory_iterator(dir / "run")) {
    if (file.path().filename().string().find(".host0.") != std::string::npos) ++events;
  }
  EXPECT_EQ(events, 1);
}

TEST(Outputs, AnAnonymousRunHidesTheHostOfItsAddress) {
  const TempDir dir;
  const ProgramResult result = run_program(convnet(
      dir / "run",
      {"--anonymous", "--dist-url", "tcp://localhost:29650", "--rank", "0", "--world-size", "1"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const std::string record = read_text(dir / "run" / "run.json");
  EXPECT_EQ(count_of(record, "localhost"), 0) << record;
  EXPECT_EQ(count_of(record, "tcp://host0:29650"), 2) << record;
}

// A run with the printed file has the same bits, and Python reads the same values from it as from
// run.json.
TEST(Outputs, APrintedConfigRunsTheSameJob) {
  const TempDir dir;
  Arguments line = {"train_convnet", "--preset", "demo-baseline", "--max-steps", "12"};
  line.insert(line.end(), {"--data", small_digits(), "--dataset", "mnist"});
  line.insert(line.end(), {"--lr", "3e-4", "--wd", ".5", "--no-overlap", "--normalize", "0.5,.25"});
  line.insert(line.end(), {"--name", "it's #1", "--seed", "9007199254740992"});
  Arguments printing = line;
  printing.emplace_back("--print-config");
  const ProgramResult printed = run_program(printing);
  ASSERT_EQ(printed.exit_code, 0) << said(printed);
  const std::string file = (dir / "run.toml").string();
  write_text(file, printed.out);

  line.erase(std::ranges::find(line, "--name"), std::ranges::find(line, "--seed"));
  line.insert(line.end(), {"-o", (dir / "typed").string()});
  ASSERT_EQ(run_program(line).exit_code, 0);
  std::string text = read_text(file);
  text.erase(text.find("name = "),
             text.find('\n', text.find("name = ")) + 1 - text.find("name = "));
  write_text(dir / "nameless.toml", text);
  const ProgramResult configured = run_program({"train_convnet",
                                                "-o",
                                                (dir / "configured").string(),
                                                "-c",
                                                (dir / "nameless.toml").string()});
  ASSERT_EQ(configured.exit_code, 0) << said(configured);
  expect_same_bits(dir / "typed", dir / "configured");

  const ProgramResult python = run_program(
      {"python3",
       "-c",
       "import json, sys, tomllib; print(json.dumps(tomllib.load(open(sys.argv[1], 'rb'))))",
       file});
  if (count_of(python.err, "No module named 'tomllib'") > 0) GTEST_SKIP() << "Python before 3.11";
  ASSERT_EQ(python.exit_code, 0) << said(python);
  EXPECT_EQ(json::parse(python.out),
            json({{"preset", "demo-baseline"},
                  {"data", small_digits()},
                  {"dataset", "mnist"},
                  {"max-steps", 12},
                  {"lr", 3e-4},
                  {"weight-decay", 0.5},
                  {"overlap", false},
                  {"normalize", "0.5,.25"},
                  {"name", "it's #1"},
                  {"seed", 9007199254740992}}));
}

// Bash itself completes flags with the script.
TEST(Outputs, BashCompletesFlagsAndChoices) {
  const TempDir dir;
  const std::string script = (dir / "script").string();
  write_text(script, run_program({"train_convnet", "--completion", "bash"}).out);
  const auto completed_words = [&](const Arguments& words) {
    Arguments line = {"bash",
                      "-c",
                      R"(set -eu; . "$1"; shift; COMP_WORDS=(train_convnet "$@"); COMP_CWORD=$#
                         _train_convnet; IFS="|"; echo "${COMPREPLY[*]}")",
                      "-",
                      script};
    line.insert(line.end(), words.begin(), words.end());
    return run_program(line).out;
  };
  const auto completed = [&](const std::string& before, const std::string& word) {
    return completed_words({before, word});
  };
  EXPECT_EQ(completed("-a", "to"), "toy_net\n");
  EXPECT_EQ(completed("--amp", "--early"), "--early-stopping|--early-stopping-delta\n");
  EXPECT_EQ(completed("--lr", ""), "\n");
  EXPECT_EQ(completed("--data", dir.path().string().substr(0, 5)).find("/tmp"), 0U);
  // Bash makes a word of its own of the = in --flag=value.
  EXPECT_EQ(completed_words({"-a", "=", "to"}), "toy_net\n");
  EXPECT_EQ(completed_words({"--progress", "="}), "auto|bar|line|json|none\n");
  const std::string spaced = (dir / "my photos").string();
  fs::create_directory(spaced);
  EXPECT_EQ(completed("--data", (dir / "my").string()), spaced + "\n");
  EXPECT_EQ(completed("--quiet", (dir / "my").string()), spaced + "\n");
}

// A training outlives the readers of its output, and its exit code is the run's own.
TEST(Outputs, WithoutReadersTheRunEndsWell) {
  const TempDir dir;
  const std::string train =
      fmt::format("{} --threads 1 --max-steps 30 -p 1 --no-eval", path_of_program("train_convnet"));
  int run = 0;
  for (const char* how : {"| head -2",
                          "2>&1 | head -2",
                          "--json 2>&1 >/dev/null | head -1",
                          "--progress bar 2>&1 >/dev/null | head -c 10",
                          "--json 2>/dev/full"}) {
    const std::string name = (dir / std::to_string(run++)).string();
    const ProgramResult result =
        run_program({"bash", "-c", fmt::format("set -o pipefail; {} -o {} {}", train, name, how)});
    EXPECT_EQ(result.exit_code, 0) << how << '\n' << said(result);
    EXPECT_EQ(read_json(fs::path(name) / "run.json").at("exit_code"), 0) << how;
  }
}

}  // namespace
}  // namespace lockstep::testing::outputs_test
