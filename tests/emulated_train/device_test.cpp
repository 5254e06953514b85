// --device cuda on one rank: what it computes, where it goes on, what it refuses.
#include "tests/emulated_train/programs.h"

namespace lockstep::testing::device_test {
namespace {

class OneRank : public EmulatedProgram {};

TEST_F(OneRank, LearnsWhatTheCpuLearns) {
  const Arguments steps = {"-b", "4", "--shards", "1", "--max-steps", "20", "--print-freq", "1"};
  expect_success(run_program(on("cpu", "cpu", steps)));
  const ProgramResult result = run_program(on_cuda("cuda", steps));
  expect_success(result);
  EXPECT_EQ(count_of(result.out, "cuda emulated device (sm_90, one graph per step)"), 1)
      << result.out;
  const std::vector<double> want = losses("cpu");
  const std::vector<double> got = losses("cuda");
  ASSERT_EQ(got.size(), 21U);  // with the evaluation
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-4 * want[i]) << i;
  const auto rank = read_json(dir_ / "cuda" / "run.json").at("ranks")[0];
  EXPECT_EQ(rank.at("device"), "cuda");
  EXPECT_GT(rank.at("device_peak_bytes"), 29'034 * 4) << "more than the weights";
  EXPECT_TRUE(
      read_json(dir_ / "cpu" / "run.json").at("ranks")[0].at("device_peak_bytes").is_null());
}

TEST_F(OneRank, NoOrderOfStreamsChangesABit) {
  // Micro-steps, and a last one that is not full.
  const Arguments steps = {"--global-batch-size",
                           "12",
                           "--batches-per-allreduce",
                           "2",
                           "--shards",
                           "2",
                           "--epochs",
                           "1",
                           "--max-steps",
                           "4"};
  expect_success(run_program(on_cuda("eager", steps)));
  for (const std::string& order : {std::string("lazy"), random_order()}) {
    SCOPED_TRACE(order);
    expect_success(run_program(on_cuda(order, steps),
                               {.environment = {{"LOCKSTEP_EMULATION_STREAMS", order}}}));
    expect_same_bits(dir_ / "eager", dir_ / order);
  }
}

// The copy of a step's state is queued, and so are the steps that write on.
TEST_F(OneRank, SavedStatesAreThoseOfTheirStepsInAnyOrderOfStreams) {
  const auto saved = [&](const std::string& order) {
    const Arguments steps = {"-b", "8", "--max-steps", "5", "--save-steps", "1", "--no-eval"};
    expect_success(run_program(on_cuda(order, steps),
                               {.environment = {{"LOCKSTEP_EMULATION_STREAMS", order}}}));
    return dir_ / order / "checkpoints";
  };
  const auto eager = saved("eager");
  const auto lazy = saved("lazy");
  for (const std::string step : {"step0000003", "step0000004"}) {
    for (const std::string& file : {step + ".safetensors", step + ".state.safetensors"}) {
      EXPECT_EQ(read_text(lazy / file), read_text(eager / file)) << file;
    }
  }
}

// Steps of 8 images and a last one of less; what is freed is the system's at once, and a replay
// that used it would find it gone.
TEST_F(OneRank, AGraphAStepGivesTheSameBits) {
  write_small_mnist(dir_ / "few", 28, 10);
  data_ = "few";
  const Arguments steps = {"-b", "8", "--epochs", "2", "--shards", "2", "--opt", "adam"};
  Arguments eager = steps;
  eager.emplace_back("--no-graph");
  expect_success(run_program(on_cuda("eager", eager)));
  for (const std::string order : {"lazy", "random:1"}) {
    SCOPED_TRACE(order);
    const ProgramResult result = run_program(
        on_cuda(order, steps),
        {.environment = {{"LOCKSTEP_EMULATION_STREAMS", order}, {"LOCKSTEP_NO_CUDA_CACHE", "1"}}});
    expect_success(result);
    EXPECT_EQ(count_of(result.out, "(sm_90, one graph per step)"), 1) << result.out;
    expect_same_bits(dir_ / "eager", dir_ / order);
  }
}

// Of the lane of the GPU, in the order of their begins: names, and that no span overlaps the next.
std::vector<std::string> device_phases(const std::filesystem::path& run) {
  const nlohmann::json trace = read_json(run / "trace.json");
  std::vector<std::string> names;
  double end = -1e9;
  for (const nlohmann::json& span : trace.at("traceEvents")) {
    if (span.at("ph") != "X" || span.at("tid") != 100'999) continue;
    EXPECT_GE(span.at("ts").get<double>(), end - 0.01) << span;
    EXPECT_GT(span.at("dur").get<double>(), 0) << span;
    end = span.at("ts").get<double>() + span.at("dur").get<double>();
    names.push_back(span.at("name"));
  }
  return names;
}

TEST_F(OneRank, ATraceSaysWhenTheGpuDidTheWork) {
  Arguments traced = {"--max-steps", "6", "--trace", "2:4", "-b", "4"};
  expect_success(run_program(on_cuda("graph", traced)));
  EXPECT_EQ(device_phases(dir_ / "graph"), std::vector<std::string>(3, "graph"));
  traced.emplace_back("--no-graph");
  expect_success(run_program(on_cuda("eager", traced)));
  std::vector<std::string> phases;
  for (int step = 2; step <= 4; ++step) {
    phases.insert(phases.end(), {"forward", "backward", "wait for sums", "optimizer"});
  }
  EXPECT_EQ(device_phases(dir_ / "eager"), phases);
  expect_same_bits(dir_ / "graph", dir_ / "eager");
}

TEST_F(OneRank, GoesOnFromACheckpointAsIfNothingHadHappened) {
  const ProgramOptions lazy = {.environment = {{"LOCKSTEP_EMULATION_STREAMS", "lazy"}}};
  const Arguments adam = {"-b", "8", "--opt", "adam"};
  const auto with = [&](Arguments more) {
    more.insert(more.end(), adam.begin(), adam.end());
    return more;
  };
  expect_success(run_program(on_cuda("whole", with({"--max-steps", "4"})), lazy));
  expect_success(run_program(on_cuda("parts", with({"--max-steps", "2"})), lazy));
  expect_success(
      run_program(on_cuda("parts", with({"--max-steps", "4", "--resume", "auto"})), lazy));
  const ProgramResult difference =
      run_program({"lockstep", "diff", weights(dir_ / "whole"), weights(dir_ / "parts")});
  EXPECT_EQ(difference.exit_code, 0) << said(difference);

  const ProgramResult evaluated = run_program(
      on_cuda("evaluated", {"--evaluate", "--pretrained", weights(dir_ / "whole")}), lazy);
  expect_success(evaluated);
  EXPECT_EQ(read_json(dir_ / "evaluated" / "run.json").at("final").at("correct"),
            read_json(dir_ / "whole" / "run.json").at("final").at("correct"));
}

TEST_F(OneRank, OfAnotherDeviceTheCheckpointSaysSo) {
  expect_success(run_program(on("cpu", "run", {"-b", "8", "--max-steps", "1"})));
  const ProgramResult result =
      run_program(on_cuda("run", {"-b", "8", "--max-steps", "2", "--resume", "auto"}));
  expect_success(result);
  EXPECT_EQ(count_of(result.err, ", cuda sm_90"), 1) << result.err;
}

// No real cuDNN knows this device's memory.
TEST_F(OneRank, WithoutCudnnThereAreNoEnginesToChoose) {
  for (const Arguments& flags : {Arguments{"--autotune"}, Arguments{"--plan-file", "p.json"}}) {
    const ProgramResult result =
        run_program(on_cuda("run", flags), {.environment = {{"LOCKSTEP_EMULATION_CUDNN", ""}}});
    EXPECT_EQ(result.exit_code, 2) << said(result);
    EXPECT_EQ(count_of(result.err, flags[0] + " has no engines to choose from"), 1) << result.err;
    EXPECT_EQ(count_of(result.err, "\n  try: leave it out, or a build"), 1) << result.err;
    EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
  }
}

void expect_no_device(const ProgramResult& result, const std::string& what) {
  EXPECT_EQ(result.exit_code, 5) << said(result);
  EXPECT_EQ(count_of(result.err, "lockstep: error: "), 1) << result.err;
  EXPECT_NE(result.err.find(what), std::string::npos) << result.err;
  EXPECT_EQ(count_of(result.err, "\n  try: "), 1) << result.err;
  EXPECT_EQ(count_of(result.err, "; or --device cpu\n"), 1) << result.err;
}

TEST_F(OneRank, AutoIsTheDeviceThatIsThere) {
  const Arguments steps = {"-b", "8", "--max-steps", "1"};
  for (const auto& [devices, device] : {std::pair("1", "cuda"), std::pair("0", "cpu")}) {
    const ProgramOptions machine = {.environment = {{"LOCKSTEP_EMULATION_DEVICES", devices}}};
    expect_success(run_program(on("auto", device, steps), machine));
    const auto ranks = read_json(dir_ / device / "run.json").at("ranks");
    EXPECT_EQ(ranks.at(0).at("device").get<std::string>().substr(0, 3),
              std::string(device).substr(0, 3));
  }
}

TEST_F(OneRank, WithoutADeviceNothingStarts) {
  const ProgramOptions none = {.environment = {{"LOCKSTEP_EMULATION_DEVICES", "0"}}};
  expect_no_device(run_program(on_cuda("run"), none), "no CUDA device is visible");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
}

// The real runtime: on a machine with a GPU it trains.
TEST_F(OneRank, TheRealProgramRefusesWithoutADriver) {
  Arguments line = on_cuda("run", {"--max-steps", "1"});
  line[0] = "train_convnet";
  const ProgramResult result = run_program(line, {.environment = {{"CUDA_VISIBLE_DEVICES", ""}}});
  expect_no_device(result, "CUDA");
}

}  // namespace
}  // namespace lockstep::testing::device_test
