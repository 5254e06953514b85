#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/allreduce/report.h"

namespace lockstep::bench::table_test {
namespace {

using ::testing::HasSubstr;

Measurement some_measurement() {
  Measurement result{.algorithm = Algorithm::kRing, .dtype = Dtype::kF16, .count = 13107200};
  result.out_of_place = {.seconds = {0.002, 0.003}, .wrong = 0};
  result.in_place = {.seconds = {0.001}, .wrong = 12};
  return result;
}

TEST(Table, RowsStandUnderTheirHeadings) {
  const std::string columns = column_text(Algorithm::kRing);
  EXPECT_THAT(columns, HasSubstr("# Algorithm: ring\n"));
  EXPECT_THAT(columns,
              HasSubstr("#\n#                                                              "
                        "out-of-place                       in-place\n"));
  EXPECT_THAT(columns,
              HasSubstr("#       size         count      type   redop    root     time   algbw   "
                        "busbw  #wrong     time   algbw   busbw  #wrong\n"));
  EXPECT_EQ(
      row_text(some_measurement(), 8),
      "    26214400      13107200      half     sum      -1  2500.00   10.49   18.35       0  "
      "1000.00   26.21   45.88      12\n");
}

TEST(Table, UncheckedSumsAreNotCalledRight) {
  Measurement result = some_measurement();
  result.in_place.wrong = Side::kUnchecked;
  EXPECT_THAT(row_text(result, 2), HasSubstr("26.21   26.21     N/A\n"));
}

TEST(Table, OpeningNamesSettingsAndRanks) {
  Report report;
  report.places = {{"here", 17}, {"there", 4000000}};
  report.transport = "mpi";
  const std::string steps = opening_text(report);
  EXPECT_THAT(steps, HasSubstr("ranks 2 transport mpi\n"));
  EXPECT_THAT(steps,
              HasSubstr("# nThread 1 nGpus 1 minBytes 33554432 maxBytes 33554432 step: "
                        "1048576(bytes) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 "
                        "graph: 0 unalign: 0\n"));
  EXPECT_THAT(steps, HasSubstr("#  Rank  0 Group  0 Pid     17 on       here device cpu\n"));
  EXPECT_THAT(steps, HasSubstr("#  Rank  1 Group  0 Pid 4000000 on      there device cpu\n"));
  report.options.sizes.step_factor = 2;
  report.note = "two hosts";
  EXPECT_THAT(opening_text(report), HasSubstr("step: 2(factor)"));
  EXPECT_THAT(opening_text(report), HasSubstr("\n# two hosts\n#\n"));
}

TEST(Table, FooterAsScriptsReadIt) {
  EXPECT_EQ(closing_text({.failed = 0, .bus_bandwidth = 12.25}),
            "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.25\n#\n");
  EXPECT_THAT(closing_text({.failed = 3}), HasSubstr("# Out of bounds values : 3 FAILED\n"));
}

TEST(Fit, KeepsTheWidth) {
  EXPECT_EQ(fit(0.034, 7), "0.03");
  EXPECT_EQ(fit(9999.99, 7), "9999.99");
  EXPECT_EQ(fit(12345.67, 7), "12345.7");
  EXPECT_EQ(fit(1234567.8, 7), "1234568");
  EXPECT_EQ(fit(123456789, 7), "1.2e+08");
  EXPECT_EQ(fit(123456789, 6), "1e+08");
}

}  // namespace
}  // namespace lockstep::bench::table_test
