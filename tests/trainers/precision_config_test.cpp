#include "engine/settings/precision_config.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/report/flag_advice.h"
#include "trainers/report/run_report.h"

namespace lockstep::trainers::precision_config_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::options_of;
using testing::usage_error;

PrecisionConfig config_of(const std::string& line) {
  return make_precision_config(options_of(line));
}

struct Scaled {
  std::string line;
  std::string scale;  // "none", "dynamic" or a number

  friend void PrintTo(const Scaled& scaled, std::ostream* out) { *out << scaled.line; }
};

std::string scale_of(const PrecisionConfig& config) {
  if (!config.loss_scaling) return "none";
  if (!config.loss_scaling->dynamic) return fmt::format("{}", config.loss_scaling->initial);
  return config.loss_scaling->initial == 65536 ? "dynamic" : "dynamic from another scale";
}

class LossScaleFlags : public ::testing::TestWithParam<Scaled> {};

TEST_P(LossScaleFlags, GiveTheScale) {
  EXPECT_EQ(scale_of(config_of(GetParam().line)), GetParam().scale);
}
INSTANTIATE_TEST_SUITE_P(Lines,
                         LossScaleFlags,
                         ::testing::Values(Scaled{"", "none"},
                                           Scaled{"--opt-level O1", "dynamic"},
                                           Scaled{"--amp", "dynamic"},
                                           Scaled{"--opt-level O2", "dynamic"},
                                           Scaled{"--opt-level O3", "none"},
                                           Scaled{"--opt-level O2 --dtype bf16", "none"},
                                           Scaled{"--opt-level O2 --loss-scale 128.0", "128"},
                                           Scaled{"--opt-level O2 --loss-scale 1", "none"},
                                           Scaled{"--opt-level O3 --loss-scale dynamic", "dynamic"},
                                           Scaled{"--fp16 --static-loss-scale 0.5", "0.5"},
                                           Scaled{"--dynamic-loss-scale", "dynamic"},
                                           Scaled{"--loss-scale 8", "8"}));

TEST(PrecisionConfig, LevelsAreApexs) {
  const PrecisionConfig o0 = config_of("");
  EXPECT_FALSE(o0.is_mixed());
  EXPECT_EQ(o0.network().images, Dtype::kF32);
  EXPECT_EQ(o0.network().autocast, std::nullopt);
  const PrecisionConfig o1 = config_of("--opt-level O1 --dtype bf16");
  EXPECT_EQ(o1.network().images, Dtype::kF32);
  EXPECT_EQ(o1.network().autocast, Dtype::kBF16);
  const PrecisionConfig o2 = config_of("--fp16");
  EXPECT_EQ(o2.level, OptLevel::kO2);
  EXPECT_EQ(o2.network().images, Dtype::kF16);
  EXPECT_EQ(o2.network().autocast, std::nullopt);
  EXPECT_TRUE(o2.master_weights && o2.keep_batchnorm_fp32);
  const PrecisionConfig o3 = config_of("--opt-level O3");
  EXPECT_EQ(o3.network().images, Dtype::kF16);
  EXPECT_FALSE(o3.master_weights || o3.keep_batchnorm_fp32);
}

TEST(PrecisionConfig, FlagsOverrideTheLevel) {
  EXPECT_FALSE(config_of("--opt-level O2 --master-weights False").master_weights);
  EXPECT_TRUE(config_of("--opt-level O2 --master-weights False").keep_batchnorm_fp32);
  EXPECT_TRUE(config_of("--opt-level O3 --keep-batchnorm-fp32 True").keep_batchnorm_fp32);
  EXPECT_TRUE(config_of("--opt-level O3 --master-weights True").keep_batchnorm_fp32);
}

TEST(PrecisionConfig, RefusesWhatWouldChangeNothing) {
  const auto refused = [](const std::string& line) {
    const auto error = usage_error([&] { config_of(line); });
    return error ? error->what() : std::string("accepted");
  };
  EXPECT_EQ(refused("--dtype bf16"), "--dtype would change nothing at --opt-level O0");
  EXPECT_EQ(refused("--opt-level O1 --keep-batchnorm-fp32 True"),
            "--keep-batchnorm-fp32 would change nothing at --opt-level O1");
  EXPECT_EQ(refused("--master-weights False"),
            "--master-weights would change nothing at --opt-level O0");
  EXPECT_EQ(refused("--opt-level O2 --keep-batchnorm-fp32 False"),
            "--keep-batchnorm-fp32 False needs --master-weights False");
  for (const char* scale : {"0", "-1", "big", "inf", "1e39"}) {
    EXPECT_EQ(refused(fmt::format("--loss-scale {}", scale)),
              fmt::format("bad value: --loss-scale {}", scale));
  }
}

TEST(PrecisionConfig, NotesSayWhatIsSlow) {
  const auto notes = [](const std::string& line, int64_t images, bool native_bf16) {
    return notes_on(config_of(line), images, native_bf16);
  };
  EXPECT_THAT(notes("", 7, false), ::testing::IsEmpty());
  EXPECT_THAT(notes("--fp16 --dtype bf16", 32, true), ::testing::IsEmpty());
  EXPECT_THAT(notes("--fp16 --dtype bf16", 32, false),
              ::testing::ElementsAre(HasSubstr("no bf16 arithmetic")));
  EXPECT_THAT(notes("--amp", 32, true),
              ::testing::ElementsAre(HasSubstr("slower than --dtype bf16")));
  EXPECT_THAT(notes("--fp16 --dtype bf16", 30, true),
              ::testing::ElementsAre(HasSubstr("30 images per rank are not a multiple of 8")));
}

TEST(PrecisionConfig, ExplainsEachClass) {
  const auto lines = [](const std::string& line) { return explain(config_of(line)); };
  EXPECT_THAT(lines("--opt-level O2"), Contains("  images and activations             f16"));
  EXPECT_THAT(lines("--opt-level O2"), Contains("  weights that the optimizer updates f32"));
  EXPECT_THAT(lines("--opt-level O1 --dtype bf16"),
              Contains("  conv, linear: input and result     bf16, cast for each use"));
  EXPECT_THAT(lines("--opt-level O1"), Contains("  images and activations             f32"));
  EXPECT_THAT(lines("--opt-level O3"), Contains("  batch norm: parameters             f16 values"));
  EXPECT_THAT(lines(""), Contains("  loss scale                         1"));
  EXPECT_THAT(lines("--fp16"), Contains(HasSubstr("dynamic, from 65536")));
}

}  // namespace
}  // namespace lockstep::trainers::precision_config_test
