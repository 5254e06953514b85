// lockstep plan --plan-file: what a user gets for a good file, and for one of no use.
#include <sstream>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "inspect/cli/lockstep_tool.h"
#include "inspect/plan/gpu_card.h"
#include "kernels/conv/conv2d_cudnn.h"
#include "kernels/conv/cudnn_plan.h"
#include "tests/support/temp_dir.h"
#include "trainers/planner/plan_file.h"

namespace lockstep::trainers::plan_command_test {
namespace {

namespace cudnn = kernels::cudnn;
using lockstep::testing::TempDir;
using lockstep::testing::write_text;
using ::testing::HasSubstr;

struct Said {
  int exit_code = 0;
  std::string out, err;
};

class PlanCommand : public ::testing::Test {
 protected:
  Said plan(const std::string& text,
            const char* arch = "--arch=convnet",
            const char* level = "--opt-level=O0") const {
    write_text(dir_ / "plans.json", text);
    const std::string file = dir_ / "plans.json";
    const char* arguments[] = {
        "lockstep", "plan", arch, "--batch-size=100", level, "--plan-file", file.c_str()};
    std::ostringstream out, err;
    const int exit_code =
        run_lockstep_tool(static_cast<int>(std::size(arguments)), arguments, out, err);
    return {exit_code, out.str(), err.str()};
  }
  PlanFile with(const std::string& engine) const {
    return {.origin = {.cudnn = cudnn::api().version(), .card = "NVIDIA H200 (sm_90)"},
            .engines = {{problem_.text(), {.engine = engine, .microseconds = 812.25}}}};
  }
  void expect_refused(const Said& said, const std::string& what) const {
    EXPECT_EQ(said.exit_code, 5);
    EXPECT_EQ(said.out, "");
    EXPECT_THAT(said.err, HasSubstr("lockstep: error: "));
    EXPECT_THAT(said.err, HasSubstr(what));
    EXPECT_THAT(said.err, HasSubstr("\n  why: "));
    EXPECT_THAT(said.err, HasSubstr("\n  try: "));
  }

  const TempDir dir_;
  // ConvNet's second convolution.
  const kernels::ConvolutionProblem problem_{
      .in = {100, 16, 14, 14}, .weight = {32, 16, 5, 5}, .params = {1, 1, 2, 2}, .has_bias = true};
};

TEST_F(PlanCommand, ShowsTheEnginesOfTheFile) {
  const cudnn::Target target = cudnn::Target::described_by(find_gpu("h200").cudnn_properties);
  const auto plans = cudnn::fitting_plans(target, problem_, cudnn::kMaxWorkspace);
  ASSERT_GE(plans.size(), 2U);
  const std::string choice = plans.back()->choice();  // not the rule's
  const Said said = plan(to_json(with(choice)));
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr(problem_.text()));
  EXPECT_THAT(said.out, HasSubstr("     " + choice + ", workspace "));
  EXPECT_THAT(said.out, HasSubstr(", 812.2 us when timed\n"));
}

TEST_F(PlanCommand, ShowsFormsThatAreOnePassWithBatchNorms) {
  const cudnn::Target target = cudnn::Target::described_by(find_gpu("h200").cudnn_properties);
  const kernels::ConvolutionProblem layer{.dtype = Dtype::kF16,
                                          .in = {100, 64, 56, 56},
                                          .weight = {64, 64, 3, 3},
                                          .params = {1, 1, 1, 1}};
  const kernels::ConvolutionProblem form = kernels::fused_forms(layer).at(0);
  const std::string choice = cudnn::make_plan(target, form, cudnn::kMaxWorkspace)->choice();
  PlanFile plans = with("");
  plans.engines = {
      {form.text(), {.engine = choice, .microseconds = 80.25, .rule_microseconds = 99.5}},
      {kernels::fused_forms(layer).at(2).text(), {.engine = PlannedEngine::kNone}}};
  const Said said = plan(to_json(plans), "--arch=resnet18", "--opt-level=O2");
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(
      said.out,
      HasSubstr(fmt::format("     {}: {}, 80.2 us in place of 99.5\n", form.text(), choice)));
  EXPECT_THAT(said.out, ::testing::Not(HasSubstr(", norm")));
  plans.engines.begin()->second.engine = "engine 4711";
  expect_refused(plan(to_json(plans), "--arch=resnet18", "--opt-level=O2"),
                 "cuDNN lacks the engine");
}

TEST_F(PlanCommand, RefusesAFileOfNoUse) {
  expect_refused(plan("not JSON"), "as a plan file");
  PlanFile stale = with("engine 0");
  stale.origin.card = "NVIDIA A100 (sm_80)";
  expect_refused(plan(to_json(stale)), "plans.json is stale");
  stale = with("engine 0");
  stale.origin.cudnn = "9.0.0";
  expect_refused(plan(to_json(stale)), "plans.json is stale");
  expect_refused(plan(to_json(with("engine 4711"))), "cuDNN lacks the engine");
}

}  // namespace
}  // namespace lockstep::trainers::plan_command_test
