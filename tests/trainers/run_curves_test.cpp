#include "trainers/page/run_curves.h"

#include <limits>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "engine/results/step_times.h"
#include "tests/support/temp_dir.h"
#include "trainers/page/curve.h"
#include "trainers/page/html.h"
#include "trainers/report/number_text.h"

namespace lockstep::trainers::run_curves_test {
namespace {

TEST(Curve, KeepsMeansAndExtremesInBoundedMemory) {
  Curve curve;
  constexpr int64_t kValues = 1'000'000;
  for (int64_t i = 1; i <= kValues; ++i)
    curve.add(static_cast<double>(i), static_cast<double>(i % 100));
  EXPECT_LE(curve.points().size(), Curve::kPoints);
  EXPECT_GE(curve.points().size(), Curve::kPoints / 2);
  EXPECT_NEAR(curve.mean(), 49.5, 1e-9);
  EXPECT_EQ(curve.best_low(), 0);
  EXPECT_EQ(curve.best_high(), 99);
  EXPECT_EQ(curve.points().back().x, static_cast<double>(kValues));
  int64_t count = 0;
  for (const CurvePoint& point : curve.points()) count += point.count;
  EXPECT_EQ(count, kValues);
}

TEST(Curve, LeavesOutWhatIsNotFinite) {
  Curve curve;
  curve.add(1, std::numeric_limits<double>::quiet_NaN());
  curve.add(2, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(curve.empty());
  EXPECT_EQ(curve.nonfinite(), 2);
}

TEST(RunCurves, ReadsLinesAndCountsBrokenOnes) {
  RunCurves curves;
  curves.add_line(
      R"({"split":"train","epoch":0,"step":10,"loss":2.5,"slowest_rank":1,"skew":0.5})");
  curves.add_line(
      R"({"split":"train","epoch":1,"step":20,"loss":null,"slowest_rank":0,"skew":0.01})");
  for (const char* const waited : {"null", "\"much\""}) {  // put() writes null for NaN
    curves.add_line(
        fmt::format(R"({{"split":"train","epoch":1,"step":20,"loader_waited":{}}})", waited));
  }
  curves.add_line(R"({"split":"val","epoch":1,"step":20,"acc1":90,"digest":"ab"})");
  for (const char* const broken :
       {"{\"split\":\"train\",\"st", "[]", "7", R"({"split":3,"step":1})"}) {
    curves.add_line(broken);
  }
  EXPECT_EQ(curves.curve("train/loss").last(), 2.5);
  EXPECT_EQ(curves.curve("train/loss").nonfinite(), 1);
  EXPECT_EQ(curves.curve("val/acc1").last(), 90);
  EXPECT_TRUE(curves.curve("val/digest").empty());
  EXPECT_EQ(curves.train_lines(), 4);
  EXPECT_EQ(curves.broken_lines(), 4);
  EXPECT_EQ(curves.last_step(), 20);
  EXPECT_EQ(curves.last_epoch(), 1);
  ASSERT_EQ(curves.slowest().size(), 2U);
  EXPECT_EQ(curves.slowest()[0].rank, 1);
  EXPECT_EQ(curves.times_slow(), (std::map<int64_t, int64_t>{{1, 1}}));
}

TEST(RunCurves, TheSlowestOfMergedSpansStays) {
  RunCurves curves;
  for (int step = 1; step <= 1000; ++step) {
    const bool planted = step == 500;
    curves.add_line(fmt::format(R"({{"split":"train","step":{},"slowest_rank":{},"skew":{}}})",
                                step,
                                planted ? 3 : 0,
                                planted ? 0.9 : 0.01));
  }
  EXPECT_LE(curves.slowest().size(), 120U);
  EXPECT_EQ(curves.slowest().back().last, 1000);
  int found = 0;
  for (const SlowestRankSpan& span : curves.slowest()) found += span.rank == 3 ? 1 : 0;
  EXPECT_EQ(found, 1);
}

TEST(StepTimes, QuantilesWithinABin) {
  StepTimes times;
  for (int i = 1; i <= 1000; ++i) times.add(i * 1e-3);
  EXPECT_EQ(times.count(), 1000);
  EXPECT_NEAR(times.quantile(0.5), 0.5, 0.01);
  EXPECT_NEAR(times.quantile(0.99), 0.99, 0.02);
  const StepTimes read = StepTimes::of(times.bins()).value();
  EXPECT_FALSE(StepTimes::of({{.low_s = -1, .high_s = 1, .count = 1}}));
  EXPECT_FALSE(StepTimes::of({{.low_s = 1, .high_s = 2, .count = -1}}));
  EXPECT_EQ(read.count(), 1000);
  EXPECT_EQ(read.quantile(0.9), times.quantile(0.9));
  times.add(0);
  times.add(1e9);
  EXPECT_EQ(times.bins().front().count, 1);
  EXPECT_EQ(times.bins().back().count, 1);
}

TEST(NumberText, AsPeopleReadThem) {
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(-123), "-123");
  EXPECT_EQ(seconds_text(0.0123), "12.3 ms");
  EXPECT_EQ(seconds_text(0.00085), "850 µs");
  EXPECT_EQ(seconds_text(125), "2 min 5 s");
  EXPECT_EQ(seconds_text(3720), "1 h 2 min");
  EXPECT_EQ(bytes_text(116136), "113 KiB");
  EXPECT_EQ(short_text(15000), "15k");
  EXPECT_EQ(value_text(0.01234), "0.01234");
  EXPECT_EQ(value_text(std::numeric_limits<double>::quiet_NaN()), "–");
}

TEST(Axis, TicksAreRoundAndHoldTheValues) {
  const Axis axis = linear_axis(0.3, 97, 5);
  EXPECT_EQ(axis.ticks, (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(axis.tick_text(20), "20");
  EXPECT_DOUBLE_EQ(axis.place(50), 0.5);
  const Axis flat = linear_axis(0.02, 0.02, 5);
  EXPECT_LT(flat.low, 0.02);
  EXPECT_GT(flat.high, 0.02);
  const Axis logarithmic = logarithmic_axis(0.05, 2.5);
  EXPECT_EQ(logarithmic.ticks.size(), 6U);  // 0.05 0.1 0.2 0.5 1 2
  EXPECT_EQ(logarithmic.tick_text(0.05), "0.05");
}

TEST(Html, EscapesEverything) {
  EXPECT_EQ(escaped("<b a=\"x\" c='y'>&"), "&lt;b a=&quot;x&quot; c=&#39;y&#39;&gt;&amp;");
  EXPECT_EQ(escaped("\x1b[31m\xff\x7f\u202e"), "\\x1b[31m\\xff\\x7f\\xe2\\x80\\xae");
  EXPECT_EQ(escaped("größe ✓"), "größe ✓");
}

}  // namespace
}  // namespace lockstep::trainers::run_curves_test
