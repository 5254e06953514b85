// Real cuDNN's engines, with times that a test makes up: execution needs a card, choosing does not.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <gmock/gmock.h>

#include "inspect/plan/gpu_card.h"
#include "kernels/conv/conv2d_cudnn.h"
#include "kernels/conv/cudnn_autotune.h"

namespace lockstep::kernels::cudnn::autotune_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class FakeTimer final : public PlanTimer {
 public:
  explicit FakeTimer(std::function<double(const ConvolutionPlan&)> rule) : rule_(std::move(rule)) {}

  double microseconds(NormStep step, const Shape& /*shape*/, Dtype /*dtype*/) override {
    return step == NormStep::kWhole ? 30 : step == NormStep::kFromSums ? 20 : 1;
  }

  double microseconds(const ConvolutionProblem& /*problem*/, const ConvolutionPlan& plan) override {
    EXPECT_THAT(plan.notes(), Not(Contains(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)));
    EXPECT_THAT(plan.notes(), Not(Contains(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)));
    EXPECT_THAT(plan.notes(), Not(Contains(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)));
    EXPECT_LE(plan.workspace_bytes(), kMaxWorkspace);
    timed.push_back(plan.choice());
    return rule_(plan);
  }

  std::vector<std::string> timed;

 private:
  std::function<double(const ConvolutionPlan&)> rule_;
};

// The gradient of weights is where cuDNN's fast engines add with atomics.
class Autotune : public ::testing::Test {
 protected:
  TimedEngine fastest(PlanTimer& timer) const {
    return fastest_engine(target_, problem_, kMaxWorkspace, timer);
  }
  std::unique_ptr<ConvolutionPlan> planned(std::string_view choice,
                                           size_t most_workspace = kMaxWorkspace) const {
    return make_plan(target_, problem_, most_workspace, choice);
  }
  std::string refusal(std::string_view choice, size_t most_workspace = kMaxWorkspace) const {
    try {
      planned(choice, most_workspace);
    } catch (const EnvironmentError& error) {
      return format_error(error);
    }
    return "accepted";
  }

  Target target_ = Target::described_by(trainers::find_gpu("h200").cudnn_properties);
  ConvolutionProblem problem_{.pass = ConvolutionPass::kBackwardWeight,
                              .dtype = Dtype::kF16,
                              .in = {32, 64, 56, 56},
                              .weight = {64, 64, 3, 3},
                              .params = {1, 1, 1, 1}};
};

TEST_F(Autotune, TakesTheEngineThatIsFastest) {
  FakeTimer all([](const ConvolutionPlan&) { return 1.0; });
  fastest(all);
  ASSERT_GE(all.timed.size(), 3U);
  for (const size_t wanted : {size_t{0}, all.timed.size() / 2, all.timed.size() - 1}) {
    FakeTimer timer([&](const ConvolutionPlan& plan) {
      return plan.choice() == all.timed[wanted] ? 2.5 : 3.0;
    });
    const TimedEngine found = fastest(timer);
    EXPECT_EQ(found.choice, all.timed[wanted]);
    EXPECT_EQ(found.microseconds, 2.5);
    EXPECT_EQ(found.rule_microseconds, wanted == 0 ? 2.5 : 3.0);
    EXPECT_EQ(found.workspace_bytes, planned(found.choice)->workspace_bytes());
  }
}

TEST_F(Autotune, OfEquallyFastOnesTheRulesEngine) {
  FakeTimer timer([](const ConvolutionPlan&) { return 7.0; });
  EXPECT_EQ(fastest(timer).choice, make_plan(target_, problem_, kMaxWorkspace)->choice());
}

TEST_F(Autotune, PassesOverEnginesThatDoNotRun) {
  FakeTimer none([](const ConvolutionPlan&) -> double {
    throw CudnnError("to execute", CUDNN_STATUS_EXECUTION_FAILED);
  });
  try {
    fastest(none);
    FAIL() << "an engine was taken";
  } catch (const EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "none of cuDNN's engines for a convolution runs");
    EXPECT_THAT(error.why(), HasSubstr(none.timed.back() + ": "));
  }
  FakeTimer last([&](const ConvolutionPlan& plan) -> double {
    if (plan.choice() != none.timed.back()) {
      throw CudnnError("to execute", CUDNN_STATUS_EXECUTION_FAILED);
    }
    return 1e9;
  });
  EXPECT_EQ(fastest(last).choice, none.timed.back());
  FakeTimer broken([](const ConvolutionPlan&) { return std::nan(""); });
  EXPECT_THROW(fastest(broken), EnvironmentError);
}

TEST_F(Autotune, AChoiceGivesThatEngineAndNoOther) {
  const auto plans = fitting_plans(target_, problem_, kMaxWorkspace);
  ASSERT_FALSE(plans.empty());
  for (const auto& plan : plans) {
    const auto again = planned(plan->choice());
    EXPECT_EQ(again->choice(), plan->choice());
  }
}

TEST_F(Autotune, AnEngineThatIsNotThereIsRefused) {
  for (const char* choice : {"engine 4711", "engine", "", "engine 58 2:1\n"}) {
    const std::string text = refusal(choice);
    EXPECT_THAT(text, HasSubstr("cuDNN lacks the engine that was chosen for a convolution"));
    EXPECT_THAT(text, HasSubstr("why: backward weight f16 32x64x56x56 -> 64, 3x3"));
    EXPECT_THAT(text, HasSubstr("try: another plan file"));
  }
}

TEST_F(Autotune, AnEngineThatWantsMoreWorkspaceIsRefused) {
  const auto plans = fitting_plans(target_, problem_, kMaxWorkspace);
  ASSERT_FALSE(plans.empty());
  const auto most =
      std::ranges::max_element(plans, {}, [](const auto& plan) { return plan->workspace_bytes(); });
  const size_t bytes = (*most)->workspace_bytes();
  ASSERT_GT(bytes, 0U);
  EXPECT_EQ(refusal((*most)->choice(), bytes), "accepted");
  EXPECT_THAT(refusal((*most)->choice(), bytes - 1), HasSubstr("workspace"));
}

// The middle convolution of a block, with the batch norms around it. Its own passes take 100 us
// each.
class FusedForms : public ::testing::Test {
 protected:
  void SetUp() override {
    forms_ = fused_forms(layer_);
    ASSERT_EQ(forms_.size(), 3U);
  }
  // An engine of a form takes so long; what is known of another form is the test's.
  TimedEngine fused(const ConvolutionProblem& form, double time) {
    FakeTimer timer([time](const ConvolutionPlan&) { return time; });
    const auto known = [this](const ConvolutionProblem& problem) {
      const auto found = known_.find(problem.text());
      return found == known_.end() ? TimedEngine{.choice = "engine 1", .microseconds = 100}
                                   : found->second;
    };
    return fused_engine(target_, form, kMaxWorkspace, known, timer);
  }
  void expect_plan(const TimedEngine& found, const ConvolutionProblem& form) {
    EXPECT_EQ(make_plan(target_, form, kMaxWorkspace, found.choice)->choice(), found.choice);
  }

  Target target_ = Target::described_by(trainers::find_gpu("h200").cudnn_properties);
  ConvolutionProblem layer_{.dtype = Dtype::kF16,
                            .in = {32, 64, 56, 56},
                            .weight = {64, 64, 3, 3},
                            .params = {1, 1, 1, 1}};
  std::vector<ConvolutionProblem> forms_;
  std::map<std::string, TimedEngine> known_;
};

// The batch norm after it takes 30 us, of which sums save 10.
TEST_F(FusedForms, SumsPayWhereTheySaveMoreThanTheyCost) {
  const TimedEngine pays = fused(forms_[0], 109);
  expect_plan(pays, forms_[0]);
  EXPECT_EQ(pays.microseconds, 129);
  EXPECT_EQ(pays.rule_microseconds, 130);
  const TimedEngine even = fused(forms_[0], 110);
  EXPECT_EQ(even.choice, kNoEngine);
  EXPECT_EQ(even.microseconds, 130);
}

// With a norm ahead: 2 convolutions, 20 us after them and 1 ahead; without it 2, 30 and 20.
TEST_F(FusedForms, ANormPaysForBothItsConvolutions) {
  known_[forms_[0].text()] = {.choice = kNoEngine, .microseconds = 140, .rule_microseconds = 130};
  const TimedEngine gradient = fused(forms_[1], 105);
  expect_plan(gradient, forms_[1]);
  EXPECT_EQ(gradient.microseconds, 105);
  EXPECT_EQ(gradient.rule_microseconds, 100);
  known_[forms_[1].text()] = gradient;
  const TimedEngine pays = fused(forms_[2], 123);
  expect_plan(pays, forms_[2]);
  EXPECT_EQ(pays.microseconds, 123 + 20 + 105 + 1);
  EXPECT_EQ(pays.rule_microseconds, 130 + 100 + 20);
  EXPECT_EQ(fused(forms_[2], 124).choice, kNoEngine);
  known_[forms_[0].text()] = {.choice = "engine 1", .microseconds = 120, .rule_microseconds = 130};
  EXPECT_EQ(fused(forms_[2], 123).choice, kNoEngine);  // the sums alone do better
}

TEST_F(FusedForms, ANormNeedsTheGradientToo) {
  known_[forms_[1].text()] = {.choice = kNoEngine, .microseconds = 100};
  EXPECT_EQ(fused(forms_[2], 1).choice, kNoEngine);
}

// cuDNN has none of them in bf16; no device that is not there is asked for the batch norms' times.
TEST_F(FusedForms, WithoutAnEngineThereIsNone) {
  for (ConvolutionProblem form : forms_) {
    form.dtype = Dtype::kBF16;
    const TimedEngine found = fused(form, 1);
    EXPECT_EQ(found.choice, kNoEngine);
    EXPECT_EQ(found.microseconds, found.rule_microseconds);
  }
}

TEST_F(FusedForms, AreForHalvesOfWholeSixteenBytes) {
  ConvolutionProblem other = layer_;
  other.dtype = Dtype::kBF16;
  EXPECT_TRUE(fused_forms(other).empty());
  other = layer_;
  other.has_bias = true;
  EXPECT_TRUE(fused_forms(other).empty());
  other = layer_;
  other.pass = ConvolutionPass::kBackwardData;
  EXPECT_TRUE(fused_forms(other).empty());
  other = layer_;
  other.weight = {60, 64, 3, 3};
  EXPECT_TRUE(fused_forms(other).empty());
}

}  // namespace
}  // namespace lockstep::kernels::cudnn::autotune_test
