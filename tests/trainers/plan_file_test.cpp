#include "trainers/planner/plan_file.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "core/error.h"
#include "tests/support/temp_dir.h"

namespace lockstep::trainers::plan_file_test {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_text;

const PlanOrigin kHere{.cudnn = "9.19.0", .card = "NVIDIA H200 (sm_90)"};

PlanFile two_engines() {
  return {
      .origin = kHere,
      .engines = {
          {"forward f16 256x4x224x224 -> 64, 7x7, stride 2, pad 3",
           {.engine = "engine 58 2:1 12:0", .microseconds = 812.25, .rule_microseconds = 900.5}},
          {"backward weight f16 256x64x56x56 -> 64, 3x3, stride 1, pad 1",
           {.engine = "engine 3", .microseconds = 1.0 / 3, .workspace_bytes = int64_t{1} << 30}}}};
}

// what | why | hint, or "accepted".
template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const EnvironmentError& error) {
    return fmt::format("{} | {} | {}", error.what(), error.why(), error.hint());
  }
  return "accepted";
}

TEST(PlanFile, ComesBackWhole) {
  const PlanFile written = two_engines();
  const PlanFile read = parse_plans(to_json(written), "plans.json");
  EXPECT_EQ(read.origin, written.origin);
  ASSERT_EQ(read.engines.size(), written.engines.size());
  for (const auto& [problem, engine] : written.engines) {
    EXPECT_EQ(read.engines.at(problem).engine, engine.engine);
    EXPECT_EQ(read.engines.at(problem).microseconds, engine.microseconds);
    EXPECT_EQ(read.engines.at(problem).rule_microseconds, engine.rule_microseconds);
    EXPECT_EQ(read.engines.at(problem).workspace_bytes, engine.workspace_bytes);
  }
  EXPECT_EQ(to_json(read), to_json(written));
  EXPECT_TRUE(parse_plans(to_json({.origin = kHere, .engines = {}}), "").engines.empty());
}

TEST(PlanFile, IsForPeopleToo) {
  EXPECT_THAT(to_json(two_engines()),
              HasSubstr("  \"cudnn\": \"9.19.0\",\n"
                        "  \"card\": \"NVIDIA H200 (sm_90)\",\n"
                        "  \"convolutions\": {\n"
                        "    \"backward weight f16 256x64x56x56 -> 64, 3x3, stride 1, pad 1\": {\n"
                        "      \"engine\": \"engine 3\",\n"));
}

TEST(PlanFile, AnotherCudnnOrCardMakesItStale) {
  EXPECT_EQ(refusal([] { check_origin(two_engines(), kHere, "p.json"); }), "accepted");
  PlanOrigin newer = kHere;
  newer.cudnn = "9.20.0";
  PlanOrigin smaller = kHere;
  smaller.card = "NVIDIA A100 (sm_80)";
  EXPECT_EQ(refusal([&] { check_origin(two_engines(), newer, "p.json"); }),
            "the plan file p.json is stale | its engines were timed by cuDNN 9.19.0 on NVIDIA H200 "
            "(sm_90), here are cuDNN 9.20.0 and NVIDIA H200 (sm_90) | --autotune to time them "
            "again, or no --plan-file: cuDNN's own order");
  EXPECT_THAT(refusal([&] { check_origin(two_engines(), smaller, "p.json"); }),
              HasSubstr("NVIDIA A100"));
}

TEST(PlanFile, WhatIsNoneIsRefused) {
  const std::string whole = to_json(two_engines());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& text : {std::string(),
                                  std::string("[]"),
                                  std::string("{}"),
                                  std::string("PK\x03\x04"),
                                  whole.substr(0, whole.size() / 2),
                                  changed("\"engine 3\"", "3"),
                                  changed("\"format_version\": 3", "\"format_version\": 3e66"),
                                  changed("\"convolutions\": {", "\"convolution\": {"),
                                  changed("\"engine 58 2:1 12:0\"", "\"\xff\"")}) {
    const std::string got = refusal([&] { parse_plans(text, "p.json"); });
    EXPECT_THAT(got, HasSubstr("cannot use p.json as a plan file | it is damaged")) << text;
    EXPECT_THAT(got, HasSubstr("| another --plan-file; --autotune makes one"));
  }
  EXPECT_THAT(
      refusal([&] { parse_plans(changed("\"format_version\": 3", "\"format_version\": 1"), "p"); }),
      HasSubstr("its format has version 1, this program reads 3"));
}

TEST(PlanFile, OneThatIsNotThereIsNamed) {
  const TempDir dir;
  EXPECT_THAT(refusal([&] { read_plans(dir / "no.json"); }), HasSubstr("no.json"));
  EXPECT_THAT(refusal([&] { read_plans(dir.path()); }), HasSubstr("cannot use"));  // it is a folder
  write_text(dir / "plans.json", to_json(two_engines()));
  EXPECT_EQ(read_plans(dir / "plans.json").engines.size(), 2U);
}

TEST(PlanFile, TheDigestIsOfWhatFixesBits) {
  PlannedEngines engines = two_engines().engines;
  const std::string before = digest_of(engines);
  EXPECT_EQ(before.size(), 16U);
  engines.begin()->second.microseconds = engines.begin()->second.rule_microseconds = 99;
  EXPECT_EQ(digest_of(engines), before);
  engines.begin()->second.engine = "engine 4";
  EXPECT_NE(digest_of(engines), before);
  EXPECT_EQ(digest_of(PlannedEngines()), "");
}

}  // namespace
}  // namespace lockstep::trainers::plan_file_test
