#include "inspect/plan/scale_report.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace lockstep::trainers::scale_report_test {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kPublished = {
    "64:4071", "32:6653", "16:10969", "8:20904", "4:39536", "2:74211"};

TEST(Tutorial, Item1_16ScaleReportGivesThePublishedFigures) {
  const std::vector<ScaleRow> rows = scale_rows(parse_timings(kPublished), 1'281'167, 90);
  const std::vector<double> thousands = {1.55, 2.9, 5.5, 10.5, 17.3, 28.3};
  ASSERT_EQ(rows.size(), thousands.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].gpus, int64_t{2} << i);
    EXPECT_NEAR(rows[i].images_per_s / 1000, thousands[i], 0.05);
  }
  EXPECT_EQ(rows[0].efficiency, 1);
  EXPECT_NEAR(rows[5].efficiency, 0.57, 0.005);
  EXPECT_NEAR(rows[5].speedup, 18.23, 0.005);
  EXPECT_THAT(scale_report(rows), HasSubstr("    64       4071      28324          443"));
}

TEST(Tutorial, Item1_16ScaleReportRefusesWhatIsNoTiming) {
  const auto refused = [](const std::vector<std::string>& pairs) -> std::string {
    try {
      parse_timings(pairs);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  for (const char* pair : {"2", "2:", "x:3", "0:3", "2:0", "2:-1", "2:nan", "1:2:3", ""}) {
    EXPECT_EQ(refused({pair}), fmt::format("bad value: {}", pair));
  }
  EXPECT_EQ(refused({"2:9", "2:8"}), "2 GPUs are given twice");
}

}  // namespace
}  // namespace lockstep::trainers::scale_report_test
