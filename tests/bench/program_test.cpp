#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/allreduce/measure.h"
#include "comm/single.h"
#include "core/error.h"
#include "tests/bench/spoiled_communicator.h"
#include "tests/support/temp_dir.h"

namespace lockstep::bench::program_test {
namespace {

using testing::read_text;
using testing::TempDir;

Report small_report(const TempDir& dir) {
  Report report;
  report.options.sizes = {.min_bytes = 4, .max_bytes = 64, .step_factor = 4};
  report.options.iterations = 2;
  report.options.algorithms = {Algorithm::kTree, Algorithm::kRing};
  report.options.json_path = (dir / "out.json").string();
  return report;
}

TEST(MeasureAll, PrintsATableAnAlgorithmAndKeepsAll) {
  const TempDir dir;
  Report report = small_report(dir);
  comm::SingleCommunicator alone;
  SpoiledCommunicator peers(alone);
  ::testing::internal::CaptureStdout();
  measure_all(peers, report);
  const std::string out = ::testing::internal::GetCapturedStdout();
  EXPECT_LT(out.find("# Algorithm: tree"), out.find("# Algorithm: ring"));
  EXPECT_NE(out.find("# Collective test concluded: bench_allreduce\n"), std::string::npos);
  EXPECT_EQ(report.measurements.size(), 6U);
  const auto json = nlohmann::json::parse(read_text(dir / "out.json"));
  EXPECT_EQ(json.at("results").size(), 6U);
  EXPECT_EQ(json.at("out_of_bounds").at("okay"), "true");
}

TEST(MeasureAll, AFolderForTheFileIsRefusedBeforeTheTable) {
  const TempDir dir;
  Report report = small_report(dir);
  report.options.json_path = dir.path().string();
  comm::SingleCommunicator alone;
  EXPECT_EXIT(measure_all(alone, report), ::testing::ExitedWithCode(5), "it is a folder");
}

TEST(MeasureAll, WrongSumsFailAfterTheTableAndTheFile) {
  const TempDir dir;
  Report report = small_report(dir);
  comm::SingleCommunicator alone;
  SpoiledCommunicator peers(alone);
  peers.last_wrong = true;
  ::testing::internal::CaptureStdout();
  EXPECT_THROW(measure_all(peers, report), DivergedError);
  const std::string out = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(out.find("# Out of bounds values : 6 FAILED\n"), std::string::npos) << out;
  const auto json = nlohmann::json::parse(read_text(dir / "out.json"));
  EXPECT_EQ(json.at("out_of_bounds").at("count"), 12);
}

}  // namespace
}  // namespace lockstep::bench::program_test
