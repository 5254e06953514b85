// Tests which step of a trace a report shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/made_run.h"
#include "trainers/config/run_files.h"
#include "trainers/page/report_page.h"
#include "trainers/page/report_parts.h"
#include "trainers/report/run_directory.h"

namespace lockstep::trainers::report_step_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::made_exchange;
using testing::made_record;
using ::testing::Not;
using testing::TempDir;
using testing::write_text;

std::string event(int64_t thread, double begin, double end, const std::string& name) {
  return fmt::format(R"({{"ph":"X","pid":1,"tid":{},"ts":{},"dur":{},"name":"{}"}},)",
                     thread,
                     begin,
                     end - begin,
                     name);
}

// Steps 3 to 5 of two ranks, 10, 12 and 30 ms long. Rank 1 begins each step a millisecond later.
std::string made_trace() {
  std::string events;
  double begin = 5000;
  for (const auto& [step, length] : {std::pair{3, 10e3}, {4, 12e3}, {5, 30e3}}) {
    for (int64_t rank = 0; rank < 2; ++rank) {
      const int64_t lane = 100'000 * (rank + 1);
      const double at = begin + 1000 * static_cast<double>(rank), end = at + length;
      events += event(lane, at, end, fmt::format("step {}", step)) +
                event(lane, at, at + 500, "wait for images") +
                event(lane, at + 500, at + 4000, "forward") +
                event(lane, at + 500, at + 4000, "layer1") +
                event(lane, at + 4000, end - 3000, "backward") +
                event(lane, end - 4000, end - 3500, "exchange") +
                event(lane, end - 3000, end - 1000, "wait for sums") +
                event(lane, end - 3000, end - 1200, "exchange") +
                event(lane, end - 1000, end, "optimizer") + event(lane + 1, at, end, "batch 7") +
                event(lane + 1000, end - 4500, end - 1100, "bucket 0") +
                event(lane + 1000, end - 3000, end - 1100, "sum");
    }
    begin += length + 2000;
  }
  events.pop_back();
  return R"({"otherData":{"lockstep":"1","format":1,"ranks":2,"device":"cpu"},"traceEvents":[)" +
         events + "]}";
}

class ReportStep : public ::testing::Test {
 protected:
  ReportStep() {
    RunRecord record = made_record(2);
    record.communication = made_exchange({{0.01, 0.001}, {0.01, 0.001}});
    write_text(dir_ / "run.json", to_json(record));
  }
  std::string chart() const {
    ViewedRun run = view_run(dir_.path());
    add_trace(run);
    return step_chart(run);
  }
  const TempDir dir_;
};

TEST_F(ReportStep, ShowsTheMedianStepOfATrace) {
  write_text(dir_ / "trace.json", made_trace());
  const TypicalStep step = read_trace(dir_.path()).typical;
  EXPECT_EQ(step.number, 4);
  ASSERT_EQ(step.ranks.size(), 2U);
  EXPECT_EQ(step.ranks[1].front().work, StepWork::kStep);
  EXPECT_DOUBLE_EQ(step.ranks[1].front().begin, 1000);
  EXPECT_EQ(step.ranks[0].size(), 10U) << "without layers and loader threads";
  const std::string html = chart();
  for (const char* part : {"step 4 of trace.json, on rank 0&#39;s clock",
                           ">rank 0<",
                           ">rank 1<",
                           ">bucket 1<",
                           "<title>forward: 3.5 ms</title>",
                           "<title>optimizer: 1 ms</title>",
                           "<title>sum of a bucket: 1.9 ms</title>",
                           "fill=\"url(#hatch)\"><title>exposed communication: 1.8 ms</title>"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  write_report(dir_.path());
  EXPECT_THAT(testing::read_text(dir_ / kReportFile), HasSubstr("step 4 of trace.json"));
}

TEST_F(ReportStep, ShowsMeansWithoutATraceAndWithABrokenOne) {
  const std::string means = chart();
  EXPECT_THAT(means, AllOf(HasSubstr("mean on rank 0"), HasSubstr(">bucket 1<")));
  for (const char* text : {"{", "{}", R"({"otherData":{"lockstep":"1","format":9,"ranks":0}})"}) {
    write_text(dir_ / "trace.json", text);
    EXPECT_EQ(chart(), means) << text;
  }
  std::filesystem::remove(dir_ / "trace.json");
  std::filesystem::create_directories(dir_ / "trace.json");
  EXPECT_EQ(chart(), means);
  EXPECT_THROW(read_trace(dir_.path()), EnvironmentError);
}

TEST_F(ReportStep, ShowsTheMemoryOfAGpu) {
  ViewedRun run = view_run(dir_.path());
  EXPECT_THAT(time_charts(run), Not(HasSubstr("Memory of the GPU")));
  run.record.ranks[1].device_peak_bytes = int64_t{3} << 30;
  EXPECT_THAT(time_charts(run), AllOf(HasSubstr("Memory of the GPU"), HasSubstr("3 GiB")));
}

}  // namespace
}  // namespace lockstep::trainers::report_step_test
