#include "trainers/report/run_record.h"

#include <cmath>
#include <type_traits>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "trainers/report/process.h"
#include "trainers/report/same_bits.h"

namespace lockstep::trainers {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json, int indent) {
  const bool is_line = indent < 0;  // which a terminal may get
  return json.dump(indent, ' ', is_line, Json::error_handler_t::replace) + "\n";
}

void put(Json& object, std::string_view name, double value) {
  object[std::string(name)] = std::isfinite(value) ? Json(value) : Json();
  if (!std::isfinite(value)) object["nonfinite"] = true;
}

template <class T, class Convert>
Json or_null(const std::optional<T>& value, Convert&& convert) {
  return value ? Json(convert(*value)) : Json();
}

Json json_of(const FinalMetrics& metrics) {
  Json json = Json::object();
  if (const std::optional<Evaluation>& evaluation = metrics.evaluation) {
    put(json, "acc1", evaluation->acc1());
    put(json, "acc5", evaluation->acc5());
    put(json, "loss", evaluation->loss);
    json["correct"] = evaluation->correct1;
    json["total"] = evaluation->total;
  }
  json["images_per_s"] = or_null(metrics.images_per_s, [](double speed) { return speed; });
  put(json, "wall_s", metrics.wall_s);
  put(json, "first_step_s", metrics.first_step_s);
  return json;
}

Json json_of(const std::vector<ResolvedFlag>& flags) {
  Json json = Json::object();
  for (const ResolvedFlag& flag : flags) {
    json[flag.name] = {{"value", flag.value}, {"origin", flag.origin}};
  }
  return json;
}

Json json_of(const std::vector<RankRecord>& ranks) {
  Json json = Json::array();
  for (const RankRecord& rank : ranks) {
    json.push_back(
        {{"host", rank.host},
         {"device", rank.device},
         {"threads", rank.threads},
         {"local_rank", rank.local_rank},
         {"cores", rank.cores},
         {"peak_bytes", rank.peak_bytes ? Json(*rank.peak_bytes) : Json()},
         {"device_peak_bytes", rank.device_peak_bytes ? Json(*rank.device_peak_bytes) : Json()}});
  }
  return json;
}

Json json_of(const RunPlan& plan) {
  Json json = Json::object();
  json["global_batch"] = plan.global_batch;
  json["micro_steps"] = plan.micro_steps;
  json["shards"] = plan.shards;
  json["bn_groups"] = plan.bn_groups;
  json["algorithm"] = plan.algorithm;
  json["transport"] = plan.transport;
  json["wire"] = plan.wire;
  json["predivide"] = plan.predivide;
  json["overlap"] = plan.overlap;
  json["buckets"] = Json::array();
  for (const BucketSize& bucket : plan.buckets) {
    json["buckets"].push_back({{"tensors", bucket.tensors}, {"bytes", bucket.bytes}});
  }
  json["plan_choices"] = plan.plan_choices.empty() ? Json() : Json(plan.plan_choices);
  json["steps_per_epoch"] = plan.steps_per_epoch;
  json["last_step"] = plan.last_step;
  json["same_bits_on"] = plan.same_bits;
  return json;
}

Json json_of(const ExchangeSummary& summary) {
  Json json = {
      {"averaged", "over the steps after the first; buckets: on rank 0, since its step began"}};
  const RankSeconds mean = summary.mean_seconds();
  json["exposed_s"] = mean.exposed;
  json["hidden_s"] = mean.hidden;
  json["ranks"] = Json::array();
  for (const ExchangeSummary::Rank& rank : summary.ranks) {
    json["ranks"].push_back({{"own_s", rank.seconds.own},
                             {"exposed_s", rank.seconds.exposed},
                             {"hidden_s", rank.seconds.hidden},
                             {"moved_bytes", rank.moved_bytes},
                             {"reduced_bytes", rank.reduced_bytes},
                             {"images", rank.images}});
  }
  json["buckets"] = Json::array();
  for (const ExchangeSummary::BucketSeconds& bucket : summary.buckets) {
    json["buckets"].push_back(
        {{"ready_s", bucket.ready}, {"start_s", bucket.start}, {"end_s", bucket.end}});
  }
  return json;
}

Json json_of(const StepTimes& times) {
  Json json = Json::array();
  for (const StepTimes::Bin& bin : times.bins()) {
    json.push_back({{"from_s", bin.low_s}, {"to_s", bin.high_s}, {"steps", bin.count}});
  }
  return json;
}

Json json_of(const Error& error, int rank) {
  return {{"what", error.what()}, {"why", error.why()}, {"try", advice_of(error)}, {"rank", rank}};
}

}  // namespace

RunPlan make_run_plan(const ResolvedRun& run, std::span<const comm::Bucket> buckets) {
  const ExchangeConfig& exchange = run.request.exchange;
  RunPlan plan{.global_batch = run.batch.images,
               .micro_steps = run.batch.micro_steps,
               .shards = run.batch.shards,
               .bn_groups = run.batch.bn_groups,
               .seeds = run.request.seeds,
               .algorithm = std::string(algorithm_name(exchange)),
               .transport = run.transport,
               .wire = std::string(name_of(exchange.wire)),
               .predivide = exchange.predivide,
               .overlap = exchange.overlap,
               .buckets = {},
               .plan_choices = run.plan_choices,
               .same_bits = same_bits_ranks(run.batch, exchange)};
  plan.buckets.reserve(buckets.size());
  for (const comm::Bucket& bucket : buckets) {
    plan.buckets.push_back({.tensors = std::ssize(bucket.parameters), .bytes = bucket.bytes});
  }
  return plan;
}

std::vector<comm::HandshakeField> handshake_fields(const RunPlan& plan) {
  using Kind = comm::HandshakeField::Kind;
  std::vector<std::string> buckets;
  buckets.reserve(plan.buckets.size());
  for (const BucketSize& bucket : plan.buckets) {
    buckets.push_back(fmt::format("{}:{}", bucket.tensors, bucket.bytes));
  }
  return {{Kind::kArgument, "images per step", std::to_string(plan.global_batch)},
          {Kind::kArgument, "micro-steps", std::to_string(plan.micro_steps)},
          {Kind::kArgument, "shards", std::to_string(plan.shards)},
          {Kind::kArgument, "BN groups", std::to_string(plan.bn_groups)},
          {Kind::kArgument, "seed", std::to_string(plan.seeds.run)},
          {Kind::kArgument, "seed of the order", std::to_string(plan.seeds.order)},
          {Kind::kArgument, "seed of the weights", std::to_string(plan.seeds.weights)},
          {Kind::kArgument, "algorithm", plan.algorithm},
          {Kind::kEnvironment, "transport", plan.transport},
          {Kind::kArgument, "wire dtype", plan.wire},
          {Kind::kArgument, "predivide factor", fmt::format("{}", plan.predivide)},
          {Kind::kArgument, "overlap", plan.overlap ? "on" : "off"},
          {Kind::kEnvironment, "gradient buckets", fmt::format("{}", fmt::join(buckets, " "))},
          {Kind::kEnvironment, "cuDNN's engines", plan.plan_choices},
          {Kind::kArgument, "same bits", fmt::format("{}", fmt::join(plan.same_bits, ","))}};
}

std::string to_json(const RunRecord& record) {
  Json json = Json::object();
  json["schema_version"] = RunRecord::kSchemaVersion;
  json["argv"] = record.argv;
  json["flags"] = json_of(record.flags);
  json["versions"] = record.versions;
  json["ranks"] = json_of(record.ranks);
  json["data_digest"] = record.data_digest;
  json["left_out"] = record.left_out;
  json["seed"] = record.plan.seeds.run;
  json["seed_order"] = record.plan.seeds.order;
  json["seed_weights"] = record.plan.seeds.weights;
  json["run"] = json_of(record.plan);
  json["evaluation"] = Json::parse(to_json(record.evaluation));
  json["resumed"] = or_null(record.resumed, [](const ResumedFrom& from) {
    return Json{{"file", from.file}, {"step", from.step}};
  });
  json["start"] = utc_text(record.start);
  json["end"] = or_null(record.end, utc_text);
  json["exit_code"] =
      or_null(record.exit_code, [](ExitCode code) { return static_cast<int>(code); });
  json["final"] = or_null(record.final_metrics, [](const FinalMetrics& m) { return json_of(m); });
  json["early_stop_epoch"] = record.early_stop_epoch ? Json(*record.early_stop_epoch) : Json();
  json["skipped_steps"] = record.skipped_steps ? Json(*record.skipped_steps) : Json();
  json["communication"] = or_null(record.communication,
                                  [](const ExchangeSummary& summary) { return json_of(summary); });
  json["step_times"] =
      or_null(record.step_times, [](const StepTimes& times) { return json_of(times); });
  json["digest"] = or_null(record.digest, to_hex);
  return dump(json, 2);
}

std::string summary_json(const RunRecord& record,
                         const std::string& directory,
                         const TrainingResult& result) {
  Json json = Json::object();
  json["schema_version"] = RunRecord::kSchemaVersion;
  json["run_dir"] = directory;
  json["ranks"] = record.ranks.size();
  json["steps"] = result.steps;
  json["skipped_steps"] = result.skipped.count;
  json["stopped"] = result.stopped;
  json["exit_code"] =
      or_null(record.exit_code, [](ExitCode code) { return static_cast<int>(code); });
  json["final"] = or_null(record.final_metrics, [](const FinalMetrics& m) { return json_of(m); });
  const bool has_best = result.best.total > 0;
  json["best"] =
      has_best ? Json{{"acc1", result.best.acc1()}, {"epoch", result.best.epoch}} : Json();
  json["digest"] = or_null(record.digest, to_hex);
  json["error"] =
      or_null(failure_of(result, directory), [](const Error& error) { return json_of(error, 0); });
  return dump(json, -1);
}

std::string summary_json(const Error& error, int rank, const std::string& directory) {
  Json json = Json::object();
  json["schema_version"] = RunRecord::kSchemaVersion;
  json["run_dir"] = directory.empty() ? Json() : Json(directory);
  json["exit_code"] = static_cast<int>(error.code());
  json["error"] = json_of(error, rank);
  return dump(json, -1);
}

std::optional<Error> failure_of(const TrainingResult& result, const std::string& directory) {
  if (!result.saved) {
    return EnvironmentError(
        "the last state of the run is not saved",
        "a warning above says which file could not be written and why",
        fmt::format("more room, then --resume {} from its newest checkpoint", directory));
  }
  if (result.stopped || !result.skipped.all) return std::nullopt;
  return DivergedError(
      "no step of the run was applied: all were skipped",
      "a gradient was infinite or NaN in each of them, so no weight has changed",
      "--loss-scale 1024, or dynamic with more steps; if it stays so, look for NaN in the input");
}

ExitCode exit_code_of(const TrainingResult& result) {
  if (const std::optional<Error> failure = failure_of(result, {})) return failure->code();
  return result.stopped ? ExitCode::kStopped : ExitCode::kDone;
}

std::string to_json_line(std::span<const Metric> metrics) {
  Json json = Json::object();
  for (const Metric& metric : metrics) {
    const auto put_value = [&](auto value) {
      if constexpr (std::is_same_v<decltype(value), double>) {
        put(json, metric.name, value);
      } else {
        json[std::string(metric.name)] = value;
      }
    };
    std::visit(put_value, metric.value);
  }
  return dump(json, -1);
}

}  // namespace lockstep::trainers
