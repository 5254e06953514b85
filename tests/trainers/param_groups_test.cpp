// --param-groups: its values, which rule applies to which parameter, and ten steps compared with
// PyTorch.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/update/parameter_groups.h"
#include "engine/update/weight_update.h"
#include "tests/support/close.h"
#include "tests/support/golden.h"
#include "tests/support/optimizers.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"

namespace lockstep::trainers::param_groups_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::options_of;
using testing::parameter;
using testing::usage_error;

OptimizerConfig config_of(const std::string& rules, const std::string& line = "--wd 0.5") {
  return make_optimizer_config(options_of(line, {{"LOCKSTEP_PARAM_GROUPS", rules}}));
}

template <class Call>
std::string refusal_of(Call&& call) {
  const auto error = usage_error(call);
  return error ? fmt::format("{} | {} | {}", error->what(), error->why(), error->hint())
               : "accepted";
}

std::string refusal(const std::string& rules) {
  return refusal_of([&] { config_of(rules); });
}

TEST(ParamGroups, ARuleHasAPatternAndSettings) {
  const std::vector<ParameterRule> rules =
      config_of(" *.bias  lr=64 wd=0.015625;0.weight epochs=0; ").groups.rules;
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].pattern, "*.bias");
  EXPECT_EQ(rules[0].lr, 64);
  EXPECT_EQ(rules[0].weight_decay, 0.015625);
  EXPECT_EQ(rules[0].epochs, std::nullopt);
  EXPECT_EQ(rules[1].pattern, "0.weight");
  EXPECT_EQ(rules[1].lr, 1);
  EXPECT_EQ(rules[1].weight_decay, std::nullopt);
  EXPECT_EQ(rules[1].epochs, 0);
}

TEST(ParamGroups, OtherTextIsRefused) {
  for (const char* bad : {"x",
                          " ",
                          ";",
                          "a lr",
                          "a lr=",
                          "a lr=x",
                          "a lr=-1",
                          "a lr=inf",
                          "a wd=-1",
                          "a epochs=-1",
                          "a epochs=1.5",
                          "a epochs=99999999",
                          "a rate=2",
                          "a lr=1; b"}) {
    EXPECT_THAT(refusal(bad), HasSubstr("bad value: --param-groups '")) << bad;
  }
  EXPECT_THAT(refusal("a wd=x"), HasSubstr(" | wd takes a number from 0 | --param-groups \""));
  EXPECT_EQ(refusal_of([] { config_of("*.bias wd=2", "--wd 0"); }),
            "--param-groups: wd= of '*.bias' would change nothing | it is a factor on "
            "--weight-decay, which is 0 | --weight-decay 1e-4 beside it, or no wd=");
}

TEST(ParamGroups, MatricesMayBeLeftToSgd) {
  const OptimizerConfig config = config_of("0.* opt=sgd; 1.* lr=2", "--opt muon");
  EXPECT_TRUE(config.groups.rules[0].by_sgd);
  EXPECT_FALSE(config.groups.rules[1].by_sgd);
  EXPECT_THAT(refusal("0.* opt=sgd"), HasSubstr("opt=sgd of '0.*' would change nothing | only "));
  EXPECT_THAT(refusal("0.* opt=adam"), HasSubstr("bad value: --param-groups '0.* opt=adam'"));
}

TEST(ParamGroups, PatternsAreGlobs) {
  for (const char* pattern : {"layer1.0.bias",
                              "*",
                              "layer*",
                              "*.bias",
                              "*1*b*s",
                              "layer?.?.bias",
                              "**.bias",
                              "l*.*.*s",
                              "*layer1.0.bias*"}) {
    EXPECT_TRUE(fits(pattern, "layer1.0.bias")) << pattern;
  }
  for (const char* pattern : {"",
                              "bias",
                              "layer1",
                              "layer1.0.bia",
                              "layer1.0.bias?",
                              "*.bia",
                              "?.bias",
                              "*x*",
                              "layer1.0.biass",
                              "LAYER*"}) {
    EXPECT_FALSE(fits(pattern, "layer1.0.bias")) << pattern;
  }
  EXPECT_TRUE(fits("*", ""));
  EXPECT_FALSE(fits("?", ""));
}

std::vector<nn::NamedParameter> parameters() {
  return {parameter("0.weight", Tensor::zeros({2, 2}, Dtype::kF32)),
          parameter("0.bias", Tensor::zeros({2}, Dtype::kF32)),
          parameter("1.weight", Tensor::zeros({2, 2}, Dtype::kF32)),
          parameter("1.bias", Tensor::zeros({2}, Dtype::kF32))};
}

// "names | decay | factor" of each group.
std::vector<std::string> groups_of(const OptimizerConfig& config) {
  std::vector<std::string> lines;
  for (const nn::ParameterGroup& group : parameter_groups(config, parameters())) {
    std::string line;
    for (const nn::NamedParameter& each : group.parameters) line += each.name + " ";
    lines.push_back(fmt::format("{}| {} | {}", line, group.weight_decay, group.lr_factor));
  }
  return lines;
}

TEST(ParamGroups, TheFirstPatternThatFitsWins) {
  EXPECT_THAT(
      groups_of(config_of("1.bias wd=0; *.bias lr=4 wd=0.25; 0.* lr=2")),
      ElementsAre(
          "1.weight | 0.5 | 1", "1.bias | 0 | 1", "0.bias | 0.125 | 4", "0.weight | 0.5 | 2"));
  EXPECT_THAT(groups_of(config_of("0.* lr=2; 1.bias wd=3", "--wd 0.5 --no-bias-decay")),
              ElementsAre("1.weight | 0.5 | 1",
                          "| 0 | 1",
                          "0.weight | 0.5 | 2",
                          "0.bias | 0 | 2",
                          "1.bias | 1.5 | 1"));
  const auto ends = trained_at_first(config_of("1.bias lr=2; *.bias epochs=3"), parameters(), 7);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].steps, 21);
}

TEST(ParamGroups, APatternThatFitsNothingIsAnsweredByTheNearestNames) {
  const auto refused = [](const std::string& rules) {
    return refusal_of([&] { parameter_groups(config_of(rules), parameters()); });
  };
  EXPECT_EQ(refused("0.bais lr=2"),
            "no parameter matches the rule '0.bais' | the network has 0.bias, 1.bias and 2 "
            "others | 0.bias, or a pattern such as *.bias");
  EXPECT_EQ(refused("encoder.* lr=2"),
            "no parameter matches the rule 'encoder.*' | the network has 0.weight, 0.bias, "
            "1.weight and 1 others | 0.weight, or a pattern such as *.bias");
  EXPECT_EQ(refused("* lr=2; 1.bias lr=3"),
            "the rule for parameters '1.bias' has no effect | the first pattern that matches "
            "wins, and an earlier one matches 1.bias and others | put it first, or leave "
            "it out");
}

constexpr const char* kNames[] = {"weight", "bias", "norm"};

class GoldenParameters : public nn::Module {
 public:
  explicit GoldenParameters(const testing::GoldenCase& golden) {
    for (const char* name : kNames) {
      register_parameter(name, golden.tensor(fmt::format("a.{}.before", name)));
    }
  }
  Var forward(const Var& x) override { return x; }
};

TEST(ParamGroups, TenStepsArePyTorchs) {
  for (const auto& golden : testing::golden_cases("param_groups")) {
    SCOPED_TRACE(golden.name());
    const bool adamw = golden.number("adamw") != 0;
    const std::string line =
        fmt::format("{} --wd 0.05 --lr-scheduler linear --epochs 5 --clip-grad-norm {}",
                    adamw ? "--opt adamw --lr 1e-3" : "--lr 0.02 --momentum 0.85 --nesterov",
                    golden.number("clip"));
    TrainingSettings settings;
    settings.epochs = 5;
    const OptimizerConfig config = config_of("norm lr=64 wd=0.015625; bias lr=0.5 epochs=3", line);
    settings.optimizer = config.options();
    settings.schedule = config.schedule;
    Stream stream;
    const GoldenParameters model(golden);
    WeightUpdate update(settings, 4, stream, model, 2);
    std::vector<nn::NamedParameter> all = model.named_parameters();
    for (int64_t step = 0; step < 10; ++step) {
      EXPECT_EQ(update.trains_fewer_from(step), step == 6);
      for (nn::NamedParameter& each : all) {
        const Tensor grads = golden.tensor(fmt::format("a.{}.grads", each.name));
        each.var.set_grad(grads.slice(step, 1).view(each.var.shape()));
      }
      update.step(step);
      for (const nn::NamedParameter& each : all) {
        const Tensor after = golden.tensor(fmt::format("a.{}.after", each.name));
        EXPECT_TRUE(testing::close(
            each.var.value().span<float>(), after.slice(step, 1).span<float>(), {2e-6, 1e-6}))
            << each.name << " after step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::trainers::param_groups_test
