// Runs whose files contain markup, escape sequences and nonsense, and full disks.
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/error.h"
#include "data/drawn_dataset.h"
#include "inspect/cli/lockstep_tool.h"
#include "inspect/runs/run_list.h"
#include "inspect/runs/watch_frame.h"
#include "tests/support/file_size_limit.h"
#include "tests/trainers/made_run.h"
#include "trainers/cli/final_report.h"
#include "trainers/config/run_files.h"
#include "trainers/page/report_page.h"
#include "trainers/report/run_directory.h"
#include "trainers/timeline/read_trace.h"

namespace lockstep::trainers::hostile_run_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::made_exchange;
using testing::made_record;
using ::testing::Not;
using testing::TempDir;
using testing::train_line;
using testing::write_text;

constexpr const char* kEvil = "<script>alert(1)</script>\x1b[31m\u202e\u009b\"'&\xff";

// A finished run in which every text is malicious.
ViewedRun evil_run() {
  ViewedRun run{.directory = kEvil, .name = kEvil, .record = made_record(2)};
  RunRecord& record = run.record;
  record.argv = {kEvil};
  for (ResolvedFlag& flag : record.flags) flag.value = flag.origin = kEvil;
  record.flags.push_back({kEvil, kEvil, kEvil});
  record.versions = {{kEvil, kEvil}};
  for (RankRecord& rank : record.ranks) rank.host = rank.device = kEvil;
  record.data_digest = record.plan.algorithm = record.plan.transport = record.plan.wire = kEvil;
  record.resumed = ResumedFrom{kEvil, 7};
  record.evaluation.class_names = {kEvil, kEvil};
  record.communication = made_exchange({{0.01, 0.001}, {0.01, 0.001}});
  for (int64_t step = 10; step <= 300; step += 10) {
    std::string line = train_line({.step = step, .loader_waited = 0.5});
    line.replace(line.find("decode"), 6, R"(<script>\u001b[31m)");
    run.curves.add_line(line);
  }
  run.mistakes = Mistakes{.classes = 2,
                          .confusion = {1, 2, 3, 4},
                          .worst = {{.index = 0, .label = 0, .predicted = 1, .loss = 2}},
                          .pictures = {""}};
  return run;
}

TEST(HostileRun, APageShowsItsTextsAndRunsNone) {
  const ViewedRun run = evil_run();
  const ViewedRun two[] = {run, run};
  for (const std::string& page : {report_page({&run, 1}), report_page(two)}) {
    EXPECT_THAT(page, AllOf(HasSubstr("&lt;script&gt;"), Not(HasSubstr("<script"))));
    EXPECT_THAT(page, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\xff"))));
    EXPECT_THAT(page, AllOf(Not(HasSubstr("\u202e")), Not(HasSubstr("\u009b"))));
  }
}

TEST(HostileRun, ATerminalGetsNoEscape) {
  ViewedRun run = evil_run();
  const ViewedRun two[] = {run, run};
  EXPECT_THAT(compare_runs(two), Not(HasSubstr("\x1b")));
  for (const std::string& line : watch_frame(run, {.size = {.columns = 200, .rows = 60}})) {
    EXPECT_THAT(line, Not(HasSubstr("\x1b")));
  }
  const TempDir dir;
  fs::create_directories(dir / kEvil);
  run.record.evaluation.class_names.clear();  // those in files are printable already
  write_text(dir / kEvil / "run.json", to_json(run.record));
  fs::create_directories(dir / "older\x1b[1m");
  write_text(dir / "older\x1b[1m" / "run.json", R"({"schema_version": "\u001b[31m"})");
  const std::string list = list_runs(dir.path(), RunOrder::kStart);
  EXPECT_THAT(list, AllOf(HasSubstr("cannot be read"), Not(HasSubstr("\x1b"))));
}

// Copies and dump() of such values end the stack.
TEST(HostileRun, DeeplyNestedValuesAreRefused) {
  constexpr size_t kDepth = 200'000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  const TempDir dir;
  fs::create_directories(dir / "deep");
  write_text(dir / "deep/run.json", R"({"schema_version":)" + deep + "}");
  EXPECT_THAT(list_runs(dir.path(), RunOrder::kStart), HasSubstr("nested more than 64 deep"));
  EXPECT_FALSE(mistakes_of(R"({"schema_version":)" + deep + "}"));
  write_text(dir / "trace.json", R"({"otherData":)" + deep + "}");
  EXPECT_THROW(read_trace(dir / "trace.json"), DataError);
}

// Paths reach the terminal whole.
TEST(HostileRun, APathReachesNoTerminalRaw) {
  const TempDir dir;
  const std::string run = dir / "run\x1b[31m\u202e\u009b1m\u00e9";
  fs::create_directories(run);
  write_text(fs::path(run) / "run.json", to_json(made_record(1)));
  for (const char* command : {"report", "runs", "compare", "flight", "trace", "inspect"}) {
    const char* const argv[] = {"lockstep", command, run.c_str(), run.c_str()};
    std::ostringstream out, err;
    run_lockstep_tool(std::string_view(command) == "compare" ? 4 : 3, argv, out, err);
    const std::string said = out.str() + err.str();
    EXPECT_THAT(said, HasSubstr("run")) << command;
    for (const char* raw : {"\x1b", "\u202e", "\u009b"}) {
      EXPECT_THAT(said, Not(HasSubstr(raw))) << command;
    }
  }
}

// With a time that grows with the square of their number, these would take minutes.
TEST(HostileRun, ALongListTakesNoLongerThanItsLength) {
  constexpr int kLong = 200'000;
  const TempDir dir;
  std::string text = to_json(made_record(1));
  const size_t end = text.find(']', text.find("\"ranks\""));
  std::string list;
  for (int i = 0; i < kLong; ++i) list += ",{\"host\":\"a\",\"device\":\"b\",\"threads\":1}";
  text.insert(end, list);
  write_text(dir / "run.json", text);
  EXPECT_EQ(view_run(dir.path()).record.ranks.size(), size_t{kLong} + 1);
  std::string objects = "{}", members = "\"a\":1";
  for (int i = 0; i < kLong; ++i) {
    objects += ",{}";
    members += fmt::format(",\"{}\":1", i);
  }
  write_text(dir / "run.json", "{\"schema_version\":{" + members + "}}");
  EXPECT_THROW(view_run(dir.path()), DataError);
  for (const char* trace : {R"({{"x":[{}]}})",
                            R"({{"otherData":{{"x":[{}]}}}})",
                            R"({{"traceEvents":[{{"args":[{}]}},[{}],{}]}})"}) {
    write_text(dir / "trace.json", fmt::format(fmt::runtime(trace), objects, objects, objects));
    EXPECT_THROW(read_trace(dir / "trace.json"), DataError);
  }
}

TEST(HostileRun, ALineWithoutAnEndIsNotHeldInMemory) {
  const TempDir dir;
  write_text(dir / "metrics.jsonl", train_line({.step = 10}) + "\n");
  fs::resize_file(dir / "metrics.jsonl", uint64_t{3} << 30);
  const RunCurves curves = read_curves(dir / "metrics.jsonl");
  EXPECT_EQ(curves.last_step(), 10);
  EXPECT_EQ(curves.broken_lines(), 1);
  write_text(dir / "run.json", "");
  fs::resize_file(dir / "run.json", uint64_t{3} << 30);
  try {
    view_run(dir.path());
    ADD_FAILURE() << "3 GiB are no record";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.why(), HasSubstr("it has 3221225472 bytes, at most"));
  }
}

TEST(HostileRun, ManyNamesAndRanksInItsLinesTakeNoMemoryWithoutEnd) {
  RunCurves curves;
  for (int i = 0; i < 10'000; ++i) {
    curves.add_line(fmt::format(
        R"({{"split":"train","step":{0},"name{0}":1,"slowest_rank":{0},"skew":1}})", i));
  }
  EXPECT_TRUE(curves.curve("train/name9999").empty());
  EXPECT_LT(curves.times_slow().size(), 10'000U);
}

// A reader that opens a pipe waits for its writer.
TEST(HostileRun, PipesAndDevicesAreNoFiles) {
  const TempDir dir;
  for (const char* name : {".lock", "metrics.jsonl", "mistakes.json", "trace.json"}) {
    ASSERT_EQ(mkfifo((dir / name).c_str(), S_IRUSR | S_IWUSR), 0);
  }
  write_text(dir / "run.json", to_json(made_record(1)));
  ViewedRun run = view_run(dir.path());
  add_trace(run);
  EXPECT_EQ(run.curves.train_lines(), 0);
  EXPECT_FALSE(run.mistakes || run.trace);
  EXPECT_THROW(read_trace(dir.path()), EnvironmentError);
  for (const char* name : {"run.json", "metrics.jsonl", "mistakes.json"}) {
    fs::remove(dir / name);
    fs::create_symlink("/dev/zero", dir / name);
  }
  EXPECT_TRUE(read_curves(dir / "metrics.jsonl").curve("train/loss").empty());
  EXPECT_THROW(view_run(dir.path()), EnvironmentError);
}

TEST(HostileRun, AConfusionMatrixHasASquareOfCells) {
  constexpr const char* kText =
      R"({{"schema_version":1,"digest":"ab","classes":{},"confusion":[1,1,1,1],"worst":[]}})";
  EXPECT_TRUE(mistakes_of(fmt::format(kText, 2)));
  for (const int64_t classes : {int64_t{-2}, int64_t{3}, int64_t{1} << 32}) {
    EXPECT_FALSE(mistakes_of(fmt::format(kText, classes))) << classes;
  }
}

TEST(RunList, RunsWithoutAFiniteLossComeLast) {
  const TempDir dir;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double losses[] = {.9, nan, .1, .5, nan, .3, .7, nan, .2};
  for (size_t i = 0; i < std::size(losses); ++i) {
    RunRecord record = made_record(1);
    record.final_metrics.emplace().evaluation = {.correct1 = 1, .total = 2, .loss = losses[i]};
    fs::create_directories(dir / fmt::format("run{}", i));
    write_text(dir / fmt::format("run{}/run.json", i), to_json(record));
  }
  const std::string list = list_runs(dir.path(), RunOrder::kLoss);
  size_t at = 0;
  for (const int run : {2, 8, 5, 3, 6, 0, 1, 4, 7}) {
    const size_t found = list.find(fmt::format("run{}", run));
    EXPECT_GT(found, at) << list;
    at = found;
  }
}

// The run must warn about it and keep the previous page.
TEST(HostileRun, AFullDiskCostsTheReportAlone) {
  const TempDir dir;
  write_text(dir / "run.json", to_json(made_record(1)));
  write_text(dir / kReportFile, "the page before");
  std::string said;
  Console console({.sink = [&](const std::string& line) { said += line + "\n"; }});
  {
    const testing::FileSizeLimit full(1000);
    write_final_report(dir.path(), {}, *data::open_digits().test, console);
  }
  EXPECT_THAT(said,
              AllOf(HasSubstr("warning: there is no report: cannot write"),
                    HasSubstr("File too large\n"),
                    HasSubstr("try: ")));
  EXPECT_EQ(testing::read_text(dir / kReportFile), "the page before");
  write_final_report(dir.path(), {}, *data::open_digits().test, console);
  EXPECT_THAT(testing::read_text(dir / kReportFile), HasSubstr("<html"));
}

}  // namespace
}  // namespace lockstep::trainers::hostile_run_test
