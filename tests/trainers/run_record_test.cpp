#include "trainers/report/run_record.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lockstep::trainers::run_record_test {
namespace {

using nlohmann::json;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

RunRecord started() {
  RunRecord record;
  record.argv = {"train_convnet", "--lr", "0.1"};
  record.flags = {{.name = "lr", .value = "0.1", .origin = "command line"},
                  {.name = "epochs", .value = "3", .origin = "default"}};
  record.versions = {{"lockstep", "0.1.0"}, {"mpi", "4.1.4"}};
  record.ranks = {{.host = "a", .device = "cpu", .threads = 2}, {.host = "b", .device = "cpu"}};
  record.data_digest = "0123456789abcdef";
  record.left_out = {{"imagefolder/val", {{".webp", 3}}}};
  record.plan = {.global_batch = 512,
                 .micro_steps = 2,
                 .shards = 8,
                 .bn_groups = 4,
                 .seeds = {.run = std::numeric_limits<uint64_t>::max(), .order = 0, .weights = 42},
                 .algorithm = "tree",
                 .transport = "shm",
                 .wire = "f16",
                 .predivide = 2,
                 .overlap = false,
                 .buckets = {{.tensors = 3, .bytes = 1000}, {.tensors = 1, .bytes = 24}},
                 .steps_per_epoch = 117,
                 .last_step = 351,
                 .same_bits = {1, 2, 4, 8}};
  record.evaluation = {.flags = {{"normalize", "0.1307,0.3081"}}, .image = "1x28x28"};
  record.start = std::chrono::system_clock::time_point(std::chrono::seconds(1'767'268'800));
  return record;
}

TEST(RunRecord, AtTheStartTheEndIsNull) {
  const json got = json::parse(to_json(started()));
  EXPECT_EQ(got["schema_version"], 1);
  EXPECT_EQ(got["argv"], json({"train_convnet", "--lr", "0.1"}));
  EXPECT_EQ(got["flags"]["lr"], json({{"value", "0.1"}, {"origin", "command line"}}));
  EXPECT_EQ(got["versions"]["mpi"], "4.1.4");
  ASSERT_EQ(got["ranks"].size(), 2U);
  EXPECT_EQ(got["ranks"][0],
            json({{"host", "a"},
                  {"device", "cpu"},
                  {"threads", 2},
                  {"local_rank", 0},
                  {"cores", 0},
                  {"peak_bytes", nullptr},
                  {"device_peak_bytes", nullptr}}));
  EXPECT_EQ(got["data_digest"], "0123456789abcdef");
  EXPECT_EQ(got["left_out"], json({{"imagefolder/val", {{".webp", 3}}}}));
  EXPECT_EQ(got["seed"], std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(got["seed_order"], 0);
  EXPECT_EQ(got["seed_weights"], 42);
  EXPECT_EQ(got["evaluation"],
            json({{"flags", {{"normalize", "0.1307,0.3081"}}},
                  {"image", "1x28x28"},
                  {"class_names", json::array()},
                  {"weights", "trained"}}));
  EXPECT_EQ(got["run"],
            json({{"global_batch", 512},
                  {"micro_steps", 2},
                  {"shards", 8},
                  {"bn_groups", 4},
                  {"algorithm", "tree"},
                  {"transport", "shm"},
                  {"wire", "f16"},
                  {"predivide", 2.0},
                  {"overlap", false},
                  {"buckets", {{{"tensors", 3}, {"bytes", 1000}}, {{"tensors", 1}, {"bytes", 24}}}},
                  {"plan_choices", nullptr},
                  {"steps_per_epoch", 117},
                  {"last_step", 351},
                  {"same_bits_on", {1, 2, 4, 8}}}));
  EXPECT_EQ(got["start"], "2026-01-01T12:00:00Z");
  for (const char* name : {"end",
                           "exit_code",
                           "final",
                           "early_stop_epoch",
                           "skipped_steps",
                           "communication",
                           "step_times",
                           "digest"}) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_TRUE(got[name].is_null()) << name;
  }
}

TEST(RunRecord, AtTheEndNothingIsNull) {
  RunRecord record = started();
  record.end = record.start + std::chrono::seconds(61);
  record.exit_code = ExitCode::kStopped;
  record.plan.plan_choices = "5b7e";
  record.digest = 0xabc;
  record.early_stop_epoch = 3;
  record.skipped_steps = 2;
  record.final_metrics = FinalMetrics{
      .evaluation = Evaluation{.correct1 = 985, .correct5 = 1000, .total = 1000, .loss = 0.125},
      .images_per_s = 2e4,
      .wall_s = 61,
      .first_step_s = 0.25};
  record.communication =
      ExchangeSummary{.ranks = {{.seconds = {.own = 0.5, .exposed = 0.25, .hidden = 0.125},
                                 .moved_bytes = 100,
                                 .reduced_bytes = 50,
                                 .images = 640},
                                {.seconds = {.own = 0.25, .exposed = 0.75, .hidden = 0.375}}},
                      .buckets = {{.ready = 0.25, .start = 0.5, .end = 0.75}}};
  record.step_times = StepTimes::of({{.low_s = 0.0099, .high_s = 0.0101, .count = 7}});
  record.ranks[0].peak_bytes = 4096;
  record.ranks[1].device_peak_bytes = 8192;
  const json got = json::parse(to_json(record));
  EXPECT_EQ(got["step_times"].size(), 1U);
  EXPECT_EQ(got["step_times"][0]["steps"], 7);
  EXPECT_EQ(got["ranks"][0]["peak_bytes"], 4096);
  EXPECT_EQ(got["ranks"][1]["device_peak_bytes"], 8192);
  EXPECT_EQ(to_json(run_record_of(to_json(record), "run.json")), to_json(record));
  EXPECT_EQ(got["end"], "2026-01-01T12:01:01Z");
  EXPECT_EQ(got["run"]["plan_choices"], "5b7e");
  const json& communication = got["communication"];
  EXPECT_EQ(communication["exposed_s"], 0.5);
  EXPECT_EQ(communication["hidden_s"], 0.25);
  EXPECT_EQ(communication["ranks"][0],
            json({{"own_s", 0.5},
                  {"exposed_s", 0.25},
                  {"hidden_s", 0.125},
                  {"moved_bytes", 100},
                  {"reduced_bytes", 50},
                  {"images", 640}}));
  EXPECT_EQ(communication["buckets"],
            json::array({{{"ready_s", 0.25}, {"start_s", 0.5}, {"end_s", 0.75}}}));
  EXPECT_EQ(got["exit_code"], 43);
  EXPECT_EQ(got["digest"], "0000000000000abc");
  EXPECT_EQ(got["early_stop_epoch"], 3);
  EXPECT_EQ(got["skipped_steps"], 2);
  EXPECT_EQ(got["final"],
            json({{"acc1", 98.5},
                  {"acc5", 100.0},
                  {"loss", 0.125},
                  {"correct", 985},
                  {"total", 1000},
                  {"images_per_s", 2e4},
                  {"wall_s", 61.0},
                  {"first_step_s", 0.25}}));
}

TEST(RunRecord, ASummaryHasTheRecordsFigures) {
  RunRecord record = started();
  TrainingResult result;
  result.steps = 20;
  json got = json::parse(summary_json(record, "runs/a", result));
  EXPECT_EQ(got["run_dir"], "runs/a");
  EXPECT_EQ(got["steps"], 20);
  for (const char* name : {"exit_code", "final", "best", "digest"})
    EXPECT_TRUE(got[name].is_null());
  record.exit_code = ExitCode::kDone;
  record.digest = 0xabc;
  record.final_metrics = FinalMetrics{.images_per_s = 2e4};
  result.best = {{.correct1 = 3, .total = 4}, 2};
  const std::string line = summary_json(record, "runs/a", result);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  got = json::parse(line);
  EXPECT_EQ(got["exit_code"], 0);
  EXPECT_EQ(got["final"], json::parse(to_json(record))["final"]);
  EXPECT_EQ(got["best"], json({{"acc1", 75.0}, {"epoch", 2}}));
  EXPECT_EQ(got["digest"], "0000000000000abc");
  EXPECT_TRUE(got["error"].is_null());
  result.saved = false;
  got = json::parse(summary_json(record, "runs/a", result));
  EXPECT_EQ(got["error"]["what"], "the last state of the run is not saved");
}

TEST(RunRecord, ARunThatAppliedNoStepHasFailed) {
  TrainingResult result;
  result.steps = result.skipped.count = 20;
  EXPECT_EQ(exit_code_of(result), ExitCode::kDone) << "others may have been applied before";
  result.skipped.all = true;
  EXPECT_EQ(exit_code_of(result), ExitCode::kDiverged);
  const json got = json::parse(summary_json(started(), "runs/a", result));
  EXPECT_EQ(got["skipped_steps"], 20);
  EXPECT_EQ(got["error"]["what"], "no step of the run was applied: all were skipped");
  result.stopped = true;
  EXPECT_EQ(exit_code_of(result), ExitCode::kStopped);
  result.saved = false;
  EXPECT_EQ(exit_code_of(result), ExitCode::kEnvironment);
}

TEST(RunRecord, IsReadBack) {
  const std::string text = to_json(started());
  EXPECT_EQ(to_json(run_record_of(text, "run.json")), text);
  json other = json::parse(text);
  for (const char* name : {"seed_order", "evaluation", "step_times"}) other.erase(name);
  EXPECT_EQ(run_record_of(other.dump(), "run.json").plan.seeds.order, started().plan.seeds.run);
  for (const json& version : {json(2), json("1"), json()}) {
    other["schema_version"] = version;
    EXPECT_THROW(run_record_of(other.dump(), "run.json"), DataError) << version;
  }
  EXPECT_THROW(run_record_of(text.substr(0, text.size() / 2), "run.json"), DataError);
  other = json::parse(text);
  other["ranks"] = 7;
  EXPECT_THROW(run_record_of(other.dump(), "run.json"), DataError);
  other = json::parse(text);
  other["digest"] = "no number";
  EXPECT_THROW(run_record_of(other.dump(), "run.json"), DataError);
}

TEST(RunRecord, NumbersWithoutAPlaceAreRefused) {
  for (const json& number : {json(1e107), json(1.5), json(uint64_t{1} << 63), json(true)}) {
    json other = json::parse(to_json(started()));
    other["run"]["same_bits_on"] = {1, number};
    EXPECT_THROW(run_record_of(other.dump(), "run.json"), DataError) << number;
  }
}

TEST(RunRecord, ATimeBeyondTheClocksIsNone) {
  json other = json::parse(to_json(started()));
  other["start"] = "5676-01-01T00:00:00Z";
  EXPECT_EQ(run_record_of(other.dump(), "run.json").start, decltype(RunRecord::start){});
}

TEST(RunRecord, NumbersThatAreNotFiniteAreMarked) {
  RunRecord record = started();
  record.final_metrics = FinalMetrics{.evaluation = Evaluation{.total = 1, .loss = kNan}};
  const json got = json::parse(to_json(record))["final"];
  EXPECT_TRUE(got["loss"].is_null());
  EXPECT_EQ(got["nonfinite"], true);
}

TEST(RunRecord, WithoutEvaluationOrStepsNoFigureIsMadeUp) {
  RunRecord record = started();
  record.final_metrics = FinalMetrics{.wall_s = 2};
  const json got = json::parse(to_json(record))["final"];
  EXPECT_EQ(got, json({{"images_per_s", nullptr}, {"wall_s", 2.0}, {"first_step_s", 0.0}}));
}

TEST(RunRecord, ArgumentsThatAreNotUtf8StayReadable) {
  RunRecord record = started();
  record.argv = {"--data", "caf\xe9"};
  EXPECT_EQ(json::parse(to_json(record))["argv"][1], "caf\xef\xbf\xbd");
}

TEST(MetricsLine, KeepsOrderAndTypes) {
  const std::initializer_list<Metric> metrics = {
      {"step", int64_t{7}}, {"split", "train"}, {"loss", 0.1}, {"skipped", false}};
  EXPECT_EQ(to_json_line(metrics),
            R"({"step":7,"split":"train","loss":0.1,"skipped":false})"
            "\n");
}

TEST(MetricsLine, NumbersThatAreNotFiniteAreMarked) {
  for (const double bad : {kNan, HUGE_VAL, -HUGE_VAL}) {
    const std::initializer_list<Metric> metrics = {{"loss", bad}, {"lr", 0.5}};
    EXPECT_EQ(to_json_line(metrics),
              R"({"loss":null,"nonfinite":true,"lr":0.5})"
              "\n");
  }
}

}  // namespace
}  // namespace lockstep::trainers::run_record_test
