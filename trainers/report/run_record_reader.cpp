#include "trainers/report/run_record_reader.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <limits>

#include <fmt/core.h>

#include "core/words.h"
#include "trainers/config/file_json.h"

namespace lockstep::trainers {
namespace {

using Time = std::chrono::system_clock::time_point;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A number that was not finite is null in the file.
double number(const OrderedFileJson& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? kNan : found->get<double>();
}

bool has(const OrderedFileJson& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && !found->is_null();
}

Time time_of(const std::string& utc) {
  std::tm time{};
  if (strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time) == nullptr) return {};
  constexpr auto kEnd =
      std::chrono::duration_cast<std::chrono::seconds>(Time::max().time_since_epoch());
  const time_t seconds = timegm(&time);  // a year of four digits may be beyond what a Time holds
  return std::abs(seconds) < kEnd.count() ? std::chrono::system_clock::from_time_t(seconds)
                                          : Time{};
}

FinalMetrics final_metrics_of(const OrderedFileJson& json) {
  FinalMetrics metrics{.wall_s = number(json, "wall_s"),
                       .first_step_s = number(json, "first_step_s")};
  if (has(json, "images_per_s")) metrics.images_per_s = number(json, "images_per_s");
  if (!has(json, "total")) return metrics;
  Evaluation evaluation{
      .correct1 = json.at("correct"), .total = json.at("total"), .loss = number(json, "loss")};
  evaluation.correct5 =
      std::llround(number(json, "acc5") * static_cast<double>(evaluation.total) / 100);
  metrics.evaluation = evaluation;
  return metrics;
}

RunPlan plan_of(const OrderedFileJson& json) {
  const OrderedFileJson& run = json.at("run");
  RunPlan plan{.global_batch = run.at("global_batch"),
               .micro_steps = run.at("micro_steps"),
               .shards = run.at("shards"),
               .bn_groups = run.at("bn_groups"),
               .algorithm = run.at("algorithm"),
               .transport = run.at("transport"),
               .wire = run.at("wire"),
               .predivide = run.at("predivide"),
               .overlap = run.at("overlap"),
               .buckets = {},
               .steps_per_epoch = run.value("steps_per_epoch", int64_t{0}),
               .last_step = run.value("last_step", int64_t{0}),
               .same_bits = run.at("same_bits_on")};
  plan.seeds.run = json.at("seed");
  plan.seeds.order = json.value("seed_order", plan.seeds.run);
  plan.seeds.weights = json.value("seed_weights", plan.seeds.run);
  if (has(run, "plan_choices")) plan.plan_choices = run.at("plan_choices");
  for (const OrderedFileJson& bucket : run.at("buckets")) {
    plan.buckets.push_back({.tensors = bucket.at("tensors"), .bytes = bucket.at("bytes")});
  }
  return plan;
}

ExchangeSummary exchange_of(const OrderedFileJson& json) {
  ExchangeSummary summary;
  for (const OrderedFileJson& rank : json.at("ranks")) {
    summary.ranks.push_back({.seconds = {.own = number(rank, "own_s"),
                                         .exposed = number(rank, "exposed_s"),
                                         .hidden = number(rank, "hidden_s")},
                             .moved_bytes = rank.at("moved_bytes"),
                             .reduced_bytes = rank.at("reduced_bytes"),
                             .images = rank.value("images", int64_t{0})});
  }
  for (const OrderedFileJson& bucket : json.at("buckets")) {
    summary.buckets.push_back({.ready = number(bucket, "ready_s"),
                               .start = number(bucket, "start_s"),
                               .end = number(bucket, "end_s")});
  }
  return summary;
}

StepTimes step_times_of(const OrderedFileJson& json) {
  std::vector<StepTimes::Bin> bins;
  for (const OrderedFileJson& bin : json) {
    bins.push_back({bin.at("from_s"), bin.at("to_s"), bin.at("steps")});
  }
  const std::optional<StepTimes> times = StepTimes::of(bins);
  if (!times) throw std::domain_error("its step_times are no times");
  return *times;
}

std::vector<RankRecord> ranks_of(const OrderedFileJson& json) {
  std::vector<RankRecord> ranks;
  for (const OrderedFileJson& rank : json) {
    ranks.push_back({.host = rank.at("host"),
                     .device = rank.at("device"),
                     .threads = rank.at("threads"),
                     .local_rank = rank.value("local_rank", 0),
                     .cores = rank.value("cores", int64_t{0})});
    if (has(rank, "peak_bytes")) ranks.back().peak_bytes = rank.at("peak_bytes");
    if (has(rank, "device_peak_bytes")) {
      ranks.back().device_peak_bytes = rank.at("device_peak_bytes");
    }
  }
  return ranks;
}

RunRecord record_of(const OrderedFileJson& json) {
  RunRecord record;
  record.argv = json.at("argv");
  for (const auto& [name, flag] : json.at("flags").items()) {
    record.flags.push_back({name, flag.at("value"), flag.at("origin")});
  }
  record.versions = json.at("versions");
  record.ranks = ranks_of(json.at("ranks"));
  record.data_digest = json.at("data_digest");
  if (has(json, "left_out")) record.left_out = json.at("left_out");
  record.plan = plan_of(json);
  if (has(json, "evaluation")) {
    record.evaluation = evaluation_record_of(json.at("evaluation").dump());
  }
  if (has(json, "resumed")) {
    const OrderedFileJson& from = json.at("resumed");
    record.resumed = ResumedFrom{from.at("file"), from.at("step")};
  }
  record.start = time_of(json.at("start"));
  if (has(json, "end")) record.end = time_of(json.at("end"));
  if (has(json, "exit_code")) record.exit_code = ExitCode{json.at("exit_code").get<int>()};
  if (has(json, "final")) record.final_metrics = final_metrics_of(json.at("final"));
  if (has(json, "early_stop_epoch")) record.early_stop_epoch = json.at("early_stop_epoch");
  if (has(json, "skipped_steps")) record.skipped_steps = json.at("skipped_steps");
  if (has(json, "communication")) record.communication = exchange_of(json.at("communication"));
  if (has(json, "step_times")) record.step_times = step_times_of(json.at("step_times"));
  if (has(json, "digest")) {
    record.digest = std::stoull(json.at("digest").get<std::string>(), nullptr, 16);
  }
  return record;
}

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw DataError(
      fmt::format("cannot read the record {}", printable(file)), why, "the folder of another run");
}

}  // namespace

RunRecord run_record_of(const std::string& json, const std::string& file) {
  try {
    const auto parsed = parse_file<OrderedFileJson>(json);
    if (!parsed.is_object()) refuse(file, "it is not a JSON object");
    const OrderedFileJson version = parsed.value("schema_version", OrderedFileJson());
    if (version != RunRecord::kSchemaVersion) {
      refuse(file,
             fmt::format("its schema_version is {}, this program reads {}",
                         printable(version.dump()),
                         RunRecord::kSchemaVersion));
    }
    return record_of(parsed);
  } catch (const OrderedFileJson::parse_error&) {
    refuse(file, "it is not a JSON object");
  } catch (const OrderedFileJson::exception& error) {
    refuse(file, printable(error.what()));
  } catch (const std::domain_error& error) {
    refuse(file, error.what());
  } catch (const std::logic_error&) {  // of std::stoull
    refuse(file, "its digest is not a hexadecimal number");
  }
}

}  // namespace lockstep::trainers
