// --device cuda with convolutions by the fake machine's cuDNN.
#include <cstdlib>

#include "kernels/conv/conv2d_cudnn.h"
#include "kernels/conv/conv2d_fused.h"
#include "tests/emulated_train/programs.h"
#include "tests/emulated_train/tiny_training.h"
#include "tests/emulation/runtime/fake_runtime.h"
#include "tests/support/close.h"
#include "tests/support/random_tensor.h"
#include "trainers/planner/step_convolutions.h"

namespace lockstep::testing::cudnn_test {
namespace {

using emulation::reset_runtime;
using emulation::runtime_counters;
using emulation::set_stream_order;
using emulation::StreamOrder;
using trainers::ResolvedRun;

struct Level {
  OptLevel level = OptLevel::kO0;
  Dtype dtype = Dtype::kF16;
  double tolerance = 1e-4;
};
// In half precision a sum near 0 may pass a ReLU on one side only, and moves a filter's gradient.
constexpr Level kLevels[] = {
    {}, {OptLevel::kO2, Dtype::kF16, 0.05}, {OptLevel::kO2, Dtype::kBF16, 0.05}};

ResolvedRun run_of(const Level& level, Device device, int64_t steps) {
  ResolvedRun run = tiny_run(device, steps);
  run.batch.bn_groups = run.batch.shards;
  run.request.precision.level = level.level;
  run.request.precision.dtype = level.dtype;
  run.request.precision.master_weights = run.request.precision.keep_batchnorm_fp32 =
      level.level != OptLevel::kO0;
  return run;
}

int64_t launches_of(const char* op) {
  const auto found = runtime_counters.launches_of.find(op);
  return found == runtime_counters.launches_of.end() ? 0 : found->second;
}

enum class Forms { kNone, kSums, kAll };

// For the layers of a narrow ResNet on images of 8x8 that cuDNN has engines for.
void choose_forms(Stream& stream, const PrecisionConfig& precision, Forms forms) {
  trainers::ModelOptions network = trainers::usual_network("resnet20");
  network.image = {3, 8, 8};
  for (const auto& call :
       trainers::convolutions_of(trainers::run_dry_step(network, 2, precision))) {
    for (const auto& form : kernels::fused_forms(call.problem)) {
      if (forms == Forms::kAll || (forms == Forms::kSums && !form.norms_in))
        kernels::choose_form(stream, form);
    }
  }
}

class OverCudnn : public EmulatedProgram {
 protected:
  OverCudnn() {
    reset_runtime();
    set_stream_order(StreamOrder::kLazy);
    say("on");
  }
  ~OverCudnn() override { unsetenv(kVariable); }

  static void say(const char* cudnn) { setenv(kVariable, cudnn, 1); }

  static TinyResult train(const ResolvedRun& run, Forms forms = Forms::kNone) {
    return train_tiny(run, make_resnet8, [&](Stream& stream) {
      choose_forms(stream, run.request.precision, forms);
    });
  }
  ProgramResult run(int ranks, const std::string& name, const Arguments& more = {}) const {
    Arguments line = on_cuda(
        name,
        {"--global-batch-size", "8", "--shards", "4", "--bn-groups", "4", "--max-steps", "3"});
    line.insert(line.end(), more.begin(), more.end());
    const ProgramOptions options = {.environment = {{"LOCKSTEP_EMULATION_DEVICES", "4"},
                                                    {"LOCKSTEP_EMULATION_STREAMS", "random:7"}}};
    return run_on(ranks, line, options);
  }
  static void expect_error(const ProgramResult& result, int exit_code, const std::string& what) {
    EXPECT_EQ(result.exit_code, exit_code) << said(result);
    EXPECT_NE(result.err.find(what), std::string::npos) << result.err;
    EXPECT_GE(count_of(result.err, "\n  why: "), 1) << result.err;
    EXPECT_GE(count_of(result.err, "\n  try: "), 1) << result.err;
  }

  static constexpr const char* kVariable = "LOCKSTEP_EMULATION_CUDNN";
};

TEST_F(OverCudnn, StepsLearnWhatTheCpuLearns) {
  for (const Level& level : kLevels) {
    reset_runtime();
    const TinyResult want = train(run_of(level, Device::kCpu, 3));
    const TinyResult got = train(run_of(level, Device::kCuda, 3));
    EXPECT_LT(distance(want.weights, got.weights), level.tolerance);
    EXPECT_NEAR(got.training.final->loss, want.training.final->loss, 10 * level.tolerance);
    EXPECT_GT(launches_of("cudnn forward"), 0);
    EXPECT_GT(launches_of("cudnn backward data"), 0);
    EXPECT_GT(launches_of("cudnn backward weight"), 0);
    EXPECT_EQ(launches_of("conv2d_forward"), 0);
  }
}

// Losses of a run of cudnn_steps, and its digest.
struct Steps {
  std::vector<double> losses;
  std::string digest;
};

Steps steps_of(const ProgramResult& result) {
  EXPECT_EQ(result.exit_code, 0) << said(result);
  Steps steps;
  std::istringstream words(result.out);
  for (std::string name, value; words >> name >> value;) {
    if (name == "loss") steps.losses.push_back(std::stod(value));
    if (name == "weights") steps.digest = value;
  }
  return steps;
}

// tests/long/cudnn_steps.py has more steps, pixels, ranks and orders.
TEST_F(OverCudnn, ResNetsLearnWhatTheCpuLearnsOnRanksToo) {
  for (const char* network : {"resnet20", "narrow50"}) {
    for (const char* level : {"O0", "O2"}) {
      SCOPED_TRACE(std::string(network) + level);
      const bool half = level == std::string("O2");
      const auto line = [&](const char* device) {
        const char* const pixels = network == std::string("resnet20") ? "8" : "32";
        return Arguments{"cudnn_steps", network, level, device, pixels, "2"};
      };
      const Steps want = steps_of(run_program(line("cpu")));
      const Steps got = steps_of(run_program(line("cuda")));
      ASSERT_EQ(got.losses.size(), 2U);
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_NEAR(got.losses[i] / want.losses.at(i), 1, half ? 2e-2 : 2e-4) << i;
      }
      const Steps several =
          steps_of(run_ranks(half ? 4 : 2,
                             line("cuda"),
                             {.environment = {{"LOCKSTEP_EMULATION_DEVICES", "4"},
                                              {"LOCKSTEP_EMULATION_STREAMS", "random:5"}}}));
      EXPECT_EQ(several.digest, got.digest);
      EXPECT_EQ(several.losses, got.losses);
    }
  }
}

TEST_F(OverCudnn, EnginesAreChosenWithTheirKnobs) {
  const kernels::ConvolutionProblem problem{
      .in = {2, 8, 6, 6}, .weight = {8, 8, 3, 3}, .params = {1, 1, 1, 1}};
  const auto result_of = [&](const char* choice) {
    Stream stream(Device::kCuda);
    kernels::cudnn::keep_plan(stream, problem, choice);
    const Tensor in = to_device(stream, random_tensor(problem.in, 1));
    const Tensor weight = to_device(stream, random_tensor(problem.weight, 2));
    Tensor out = Tensor::empty(problem.out(), Dtype::kF32, Device::kCuda);
    kernels::conv2d_forward(
        stream, Shards::single(2), {in, weight, kernels::no_tensor, problem.params, out});
    return to_cpu(stream, out);
  };
  const Tensor two = result_of("engine 6 17:2 2:5"), three = result_of("engine 6 17:3 2:5");
  EXPECT_FALSE(same_bits(two, three));
  EXPECT_TRUE(same_bits(three, result_of("engine 6 17:3 2:5")));
  EXPECT_FALSE(same_bits(three, result_of("engine 9")));
  for (const char* choice :
       {"engine 0", "engine 1", "engine 2", "engine 3", "engine 4", "engine 6 17:9 2:5"}) {
    EXPECT_THROW(result_of(choice), EnvironmentError) << choice;
  }
}

// The sums of a form are of values that are not rounded yet: near, not the same bits.
TEST_F(OverCudnn, FusedFormsLearnWhatOpsOfTheirOwnLearn) {
  const Level level = kLevels[1];
  const TinyResult want = train(run_of(level, Device::kCuda, 3));
  EXPECT_EQ(launches_of("cudnn forward with sums"), 0);
  for (const Forms forms : {Forms::kSums, Forms::kAll}) {
    reset_runtime();
    const TinyResult got = train(run_of(level, Device::kCuda, 3), forms);
    EXPECT_GT(launches_of("cudnn forward with sums"), 0);
    EXPECT_EQ(launches_of("cudnn forward with norm and sums") > 0, forms == Forms::kAll);
    EXPECT_EQ(launches_of("cudnn backward weight with norm") > 0, forms == Forms::kAll);
    EXPECT_LT(distance(want.weights, got.weights), 2 * level.tolerance) << static_cast<int>(forms);
    EXPECT_NEAR(got.training.final->loss, want.training.final->loss, level.tolerance);
  }
}

TEST_F(OverCudnn, AGraphAndAnyOrderOfStreamsLeaveTheBits) {
  for (const Level& level : {kLevels[0], kLevels[1]}) {
    for (const Forms forms : {Forms::kNone, Forms::kAll}) {
      if (level.level == OptLevel::kO0 && forms == Forms::kAll) continue;  // no engines in f32
      SCOPED_TRACE(static_cast<int>(forms));
      ResolvedRun run = run_of(level, Device::kCuda, 4);
      reset_runtime();
      set_stream_order(StreamOrder::kLazy);
      const TinyResult graph = train(run, forms);
      EXPECT_GT(runtime_counters.graph_launches, 1);
      run.request.graph = false;
      expect_same_weights(train(run, forms), graph);
      for (const uint64_t seed : {1, 2, 3}) {
        set_stream_order(StreamOrder::kRandom, seed);
        run.request.graph = seed % 2 == 0;
        expect_same_weights(train(run, forms), graph);
      }
    }
  }
}

TEST_F(OverCudnn, RanksGiveTheBitsOfOne) {
  for (const char* level : {"O0", "O2"}) {
    const std::string one = level + std::string("-1");
    expect_success(run(1, one, {"--opt-level", level}));
    const std::string several = level + std::string("-several");
    expect_success(run(level[1] == '0' ? 2 : 4, several, {"--opt-level", level, "--no-graph"}));
    expect_same_bits(dir_ / one, dir_ / several);
  }
}

// The engine by rule cuts a sum in two, the fastest one in three. A plan file keeps these knobs.
TEST_F(OverCudnn, AutotuneTakesTheFastestAndItsFileGivesItAgain) {
  const std::string file = (dir_ / "plans.json").string();
  expect_success(run(1, "rule"));
  expect_success(run(2, "timed", {"--autotune", "--plan-file", file}));
  const nlohmann::json engines = read_json(file).at("convolutions");
  ASSERT_GT(engines.size(), 5U);
  for (const auto& [problem, engine] : engines.items()) {
    EXPECT_EQ(engine.at("engine"), "engine 6 17:3 2:5") << problem;
    EXPECT_GT(engine.at("workspace_bytes"), 0) << problem;
  }
  const auto differ = [&](const char* one, const char* other) {
    return run_program({"lockstep", "diff", weights(dir_ / one), weights(dir_ / other)}).exit_code;
  };
  EXPECT_EQ(differ("rule", "timed"), 1);
  expect_success(run(1, "again", {"--plan-file", file, "--no-graph"}));
  expect_same_bits(dir_ / "timed", dir_ / "again");
}

TEST_F(OverCudnn, AutotunePassesOverEnginesThatDoNotRun) {
  say("fails-with-knobs");
  expect_success(run(1, "timed", {"--autotune"}));
  const nlohmann::json engines = read_json(dir_ / "timed" / "plans.json").at("convolutions");
  ASSERT_FALSE(engines.empty());
  for (const auto& [problem, engine] : engines.items()) {
    EXPECT_EQ(engine.at("engine"), "engine 9") << problem;
  }
}

TEST_F(OverCudnn, AnEngineThatTakesNoPlanGivesWayToTheNext) {
  say("refuses-plans");
  expect_success(run(1, "run"));
}

TEST_F(OverCudnn, SaysWhatIsWrongWithTheOneThatItFinds) {
  say("old-version");  // 9.7: too old to plan without a card, not to run on one
  expect_success(run(1, "run"));
  say("other-cuda");
  expect_error(run(1, "run", {"--overwrite"}), 5, "error: cuDNN is for another CUDA");
  say("lacks-a-function");
  expect_error(run(1, "run", {"--overwrite"}), 5, "why: it has no function cudnnBackendExecute");
  say("no-engine:f16");
  expect_error(run(1, "run", {"--overwrite", "--opt-level", "O2"}),
               5,
               "error: cuDNN has no plan for a convolution\n  why: forward f16 2x4x28x28");
}

TEST_F(OverCudnn, SaysWhatFailsWhileItRuns) {
  say("fails-to-execute");
  expect_error(
      run(1, "run"), 5, "error: cuDNN refused to execute a convolution\n  why: status 5000");
  say("overruns-workspace");
  const ProgramResult result = run(1, "run", {"--overwrite"});
  expect_error(result, 5, "unspecified launch failure");
  EXPECT_NE(result.err.find("cuDNN wrote outside its workspace"), std::string::npos);
}

// Nothing in a run can tell: the figures must.
TEST_F(OverCudnn, AWrongResultShowsBesideTheCpu) {
  const TinyResult want = train(run_of({}, Device::kCpu, 3));
  say("wrong-result");
  const TinyResult got = train(run_of({}, Device::kCuda, 3));
  EXPECT_FALSE(distance(want.weights, got.weights) < 10 * kLevels[0].tolerance);
}

TEST_F(OverCudnn, VersionsAreRecordedAndCompared) {
  expect_success(run(2, "run"));
  EXPECT_EQ(read_json(dir_ / "run" / "run.json").at("versions").at("cudnn"), "9.19.0");
  Arguments line = {"sh",
                    "-c",
                    "[ $OMPI_COMM_WORLD_RANK = 0 ] || LOCKSTEP_EMULATION_CUDNN=newer-version; "
                    "export LOCKSTEP_EMULATION_CUDNN; exec \"$@\"",
                    "sh",
                    path_of_program("train_convnet_emulated")};
  const Arguments rest = on_cuda("other");
  line.insert(line.end(), rest.begin() + 1, rest.end());
  const ProgramResult result = run_ranks(2, line);
  expect_error(result, 5, "cudnn 9.19.0");
  EXPECT_NE(result.err.find("cudnn 9.20.0"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace lockstep::testing::cudnn_test
