#include "bench/allreduce/report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lockstep::bench::report_test {
namespace {

Report some_report() {
  Report report;
  report.arguments = {"bench_allreduce", "-f", "2", "\"\\\xff"};
  report.options.sizes.step_factor = 2;
  report.places = {{"here", 17}, {"there", 18}};
  report.transport = "mpi";
  report.measurements = {{.algorithm = Algorithm::kStar, .count = 1000}};
  report.measurements[0].out_of_place = {.seconds = {0.25, 0.25}};
  report.measurements[0].in_place = {.seconds = {0.4, 0.1, 0.3, 0.2}, .wrong = 5};
  return report;
}

TEST(BenchReport, HoldsWhatNcclTestsWrites) {
  const nlohmann::json json = nlohmann::json::parse(json_text(some_report()));
  EXPECT_EQ(json.at("version"), 2);
  EXPECT_EQ(json.at("args").size(), 4U);
  const auto& config = json.at("config");
  EXPECT_EQ(config.at("minimum_bytes"), 32 << 20);
  EXPECT_EQ(config.at("step_factor"), 2);
  EXPECT_FALSE(config.contains("step_bytes"));
  EXPECT_EQ(config.at("devices").size(), 2U);
  EXPECT_EQ(config.at("devices")[1].at("rank"), 1);
  EXPECT_EQ(config.at("devices")[1].at("hostname"), "there");
  EXPECT_EQ(json.at("out_of_bounds"), (nlohmann::json{{"count", 1}, {"okay", "false"}}));
  EXPECT_EQ(json.at("average_bus_bandwidth").at("okay"), "unchecked");
}

TEST(BenchReport, ResultsHaveTimesAndTheirStatistics) {
  const nlohmann::json json = nlohmann::json::parse(json_text(some_report()));
  ASSERT_EQ(json.at("results").size(), 1U);
  const auto& result = json.at("results")[0];
  EXPECT_EQ(result.at("size"), 4000);
  EXPECT_EQ(result.at("count"), 1000);
  EXPECT_EQ(result.at("type"), "float");
  EXPECT_EQ(result.at("redop"), "sum");
  EXPECT_EQ(result.at("algorithm"), "star");
  EXPECT_TRUE(result.at("out_of_place").at("nwrong").is_null());
  EXPECT_EQ(result.at("in_place").at("nwrong"), 5);
  EXPECT_DOUBLE_EQ(result.at("in_place").at("time"), 250000);
  EXPECT_DOUBLE_EQ(result.at("in_place").at("alg_bw"), 4000 / 0.25 / 1e9);
  const auto& times = result.at("in_place_per_iter");
  EXPECT_DOUBLE_EQ(times.at("min_us"), 100000);
  EXPECT_DOUBLE_EQ(times.at("p50_us"), 200000);
  EXPECT_DOUBLE_EQ(times.at("p95_us"), 400000);
  EXPECT_DOUBLE_EQ(times.at("max_us"), 400000);
  EXPECT_EQ(times.at("times_us").size(), 4U);
  EXPECT_NEAR(times.at("stdev_us"), 111803.4, 0.1);
}

}  // namespace
}  // namespace lockstep::bench::report_test
