#include "trainers/report/run_record.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include <fmt/ranges.h>

#include "core/digest.h"
#include "core/words.h"
#include "engine/state/position_fields.h"
#include "trainers/config/file_json.h"
#include "trainers/report/process.h"
#include "trainers/report/run_report.h"

namespace lockstep::trainers {
namespace {

using Json = OrderedFileJson;
using Time = std::chrono::system_clock::time_point;

// How a member is read where it is absent, and written where it is empty.
enum class Member : uint8_t {
  kAlways,
  kLater,       // older versions lack it: it keeps its default
  kEmptyIsNull  // a text
};

// The functions below call visit(name, field) for each field of run.json, in its order, to write it
// or to read it.
void for_each_field(Possibly<BucketSize> auto& bucket, auto&& visit) {
  visit("tensors", bucket.tensors);
  visit("bytes", bucket.bytes);
}
void for_each_field(Possibly<RunPlan> auto& plan, auto&& visit) {
  visit("global_batch", plan.global_batch);
  visit("micro_steps", plan.micro_steps);
  visit("shards", plan.shards);
  visit("bn_groups", plan.bn_groups);
  visit("algorithm", plan.algorithm);
  visit("transport", plan.transport);
  visit("wire", plan.wire);
  visit("predivide", plan.predivide);
  visit("overlap", plan.overlap);
  visit("buckets", plan.buckets);
  visit("plan_choices", plan.plan_choices, Member::kEmptyIsNull);
  visit("steps_per_epoch", plan.steps_per_epoch, Member::kLater);
  visit("last_step", plan.last_step, Member::kLater);
  visit("same_bits_on", plan.same_bits);
}
void for_each_field(Possibly<RankRecord> auto& rank, auto&& visit) {
  visit("host", rank.host);
  visit("device", rank.device);
  visit("threads", rank.threads);
  visit("local_rank", rank.local_rank, Member::kLater);
  visit("cores", rank.cores, Member::kLater);
  visit("peak_bytes", rank.peak_bytes);
  visit("device_peak_bytes", rank.device_peak_bytes);
}
void for_each_field(Possibly<ResumedFrom> auto& from, auto&& visit) {
  visit("file", from.file);
  visit("step", from.step);
}
void for_each_field(Possibly<FinalMetrics> auto& metrics, auto&& visit) {  // but the evaluation
  visit("images_per_s", metrics.images_per_s);
  visit("wall_s", metrics.wall_s);
  visit("first_step_s", metrics.first_step_s);
}
void for_each_field(Possibly<ExchangeSummary::Rank> auto& rank, auto&& visit) {
  visit("own_s", rank.seconds.own);
  visit("exposed_s", rank.seconds.exposed);
  visit("hidden_s", rank.seconds.hidden);
  visit("moved_bytes", rank.moved_bytes);
  visit("reduced_bytes", rank.reduced_bytes);
  visit("images", rank.images, Member::kLater);
}
void for_each_field(Possibly<ExchangeSummary::BucketSeconds> auto& bucket, auto&& visit) {
  visit("ready_s", bucket.ready);
  visit("start_s", bucket.start);
  visit("end_s", bucket.end);
}
void for_each_field(Possibly<StepTimes::Bin> auto& bin, auto&& visit) {
  visit("from_s", bin.low_s);
  visit("to_s", bin.high_s);
  visit("steps", bin.count);
}
void for_each_field(Possibly<ExchangeSummary> auto& summary, auto&& visit) {
  const std::string averaged =
      "over the steps after the first; buckets: on rank 0, since its step began";
  const RankSeconds mean = summary.mean_seconds();
  visit("averaged", averaged);  // constants are not read back
  visit("exposed_s", mean.exposed);
  visit("hidden_s", mean.hidden);
  visit("ranks", summary.ranks);
  visit("buckets", summary.buckets);
}
void for_each_field(Possibly<RunRecord> auto& record, auto&& visit) {  // but the digest
  visit("argv", record.argv);
  visit("flags", record.flags);
  visit("versions", record.versions);
  visit("ranks", record.ranks);
  visit("data_digest", record.data_digest);
  visit("left_out", record.left_out, Member::kLater);
  visit("seed", record.plan.seeds.run);
  visit("seed_order", record.plan.seeds.order, Member::kLater);
  visit("seed_weights", record.plan.seeds.weights, Member::kLater);
  visit("run", record.plan);
  visit("evaluation", record.evaluation, Member::kLater);
  visit("resumed", record.resumed);
  visit("start", record.start);
  visit("end", record.end);
  visit("exit_code", record.exit_code);
  visit("final", record.final_metrics);
  visit("early_stop_epoch", record.early_stop_epoch);
  visit("skipped_steps", record.skipped_steps);
  visit("communication", record.communication);
  visit("step_times", record.step_times);
}
template <class T>
concept HasFields = requires(T& value) { for_each_field(value, [](auto&&...) {}); };
template <class T>
concept Optional = requires(T& value) { value.has_value(); };

std::string dump(const Json& json, int indent) {
  const bool is_line = indent < 0;  // which a terminal may get
  return json.dump(indent, ' ', is_line, Json::error_handler_t::replace) + "\n";
}

void put(Json& object, std::string_view name, double value) {
  object[std::string(name)] = std::isfinite(value) ? Json(value) : Json();
  if (!std::isfinite(value)) object["nonfinite"] = true;
}

Json json_of(const Error& error, int rank) {
  return {{"what", error.what()}, {"why", error.why()}, {"try", advice_of(error)}, {"rank", rank}};
}

void put_evaluation(Json& json, const std::optional<Evaluation>& evaluation) {
  if (!evaluation) return;
  put(json, "acc1", evaluation->acc1());
  put(json, "acc5", evaluation->acc5());
  put(json, "loss", evaluation->loss);
  json["correct"] = evaluation->correct1;
  json["total"] = evaluation->total;
}

template <class T>
Json json_of(const T& value) {
  Json json;
  if constexpr (Optional<T>) {
    if (value) json = json_of(*value);
  } else if constexpr (std::is_same_v<T, Time>) {
    json = utc_text(value);
  } else if constexpr (std::is_same_v<T, EvaluationRecord>) {
    json = Json::parse(to_json(value));
  } else if constexpr (std::is_same_v<T, StepTimes>) {
    json = json_of(value.bins());
  } else if constexpr (std::is_same_v<T, std::vector<ResolvedFlag>>) {
    json = Json::object();
    for (const ResolvedFlag& flag : value) {
      json[flag.name] = {{"value", flag.value}, {"origin", flag.origin}};
    }
  } else if constexpr (requires { requires HasFields<typename T::value_type>; }) {
    json = Json::array();
    for (const auto& each : value) json.push_back(json_of(each));
  } else if constexpr (HasFields<T>) {
    json = Json::object();
    if constexpr (std::is_same_v<T, FinalMetrics>) put_evaluation(json, value.evaluation);
    for_each_field(value, [&]<class F>(const char* name, const F& field, Member member = {}) {
      if constexpr (std::is_same_v<F, double>) {
        put(json, name, field);
      } else {
        json[name] = json_of(field);
        if constexpr (std::is_same_v<F, std::string>) {
          if (member == Member::kEmptyIsNull && field.empty()) json[name] = nullptr;
        }
      }
    });
  } else {
    json = value;
  }
  return json;
}

// A number that was not finite is null in the file.
double number(const Json& object, const char* name) {
  const auto found = object.find(name);
  const bool is_known = found != object.end() && !found->is_null();
  return is_known ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
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

StepTimes step_times_of(const std::vector<StepTimes::Bin>& bins) {
  const std::optional<StepTimes> times = StepTimes::of(bins);
  if (!times) throw std::domain_error("its step_times are no times");
  return *times;
}

std::optional<Evaluation> evaluation_of(const Json& json) {
  if (json.value("total", Json()).is_null()) return std::nullopt;
  Evaluation evaluation{
      .correct1 = json.at("correct"), .total = json.at("total"), .loss = number(json, "loss")};
  evaluation.correct5 =
      std::llround(number(json, "acc5") * static_cast<double>(evaluation.total) / 100);
  return evaluation;
}

template <class T>
void read(const Json& json, T& value) {
  if constexpr (Optional<T>) {
    read(json, value.emplace());
  } else if constexpr (std::is_same_v<T, Time>) {
    value = time_of(json);
  } else if constexpr (std::is_same_v<T, EvaluationRecord>) {
    value = evaluation_record_of(json.dump());
  } else if constexpr (std::is_same_v<T, StepTimes>) {
    std::vector<StepTimes::Bin> bins;
    read(json, bins);
    value = step_times_of(bins);
  } else if constexpr (std::is_same_v<T, std::vector<ResolvedFlag>>) {
    for (const auto& [name, flag] : json.items()) {
      value.push_back({name, flag.at("value"), flag.at("origin")});
    }
  } else if constexpr (requires { requires HasFields<typename T::value_type>; }) {
    for (const Json& each : json) read(each, value.emplace_back());
  } else if constexpr (HasFields<T>) {
    for_each_field(value, [&]<class F>(const char* name, F& field, Member member = {}) {
      const auto found = json.find(name);
      const bool is_there = found != json.end() && !found->is_null();
      if constexpr (std::is_same_v<F, double>) {
        field = number(json, name);
      } else if constexpr (!std::is_const_v<F>) {
        const bool may_lack = Optional<F> || member != Member::kAlways;
        if (is_there || !may_lack) read(json.at(name), field);
      }
    });
    if constexpr (std::is_same_v<T, FinalMetrics>) value.evaluation = evaluation_of(json);
  } else {
    json.get_to(value);
  }
}

RunRecord record_of(const Json& json) {
  RunRecord record;
  read(json, record);
  Seeds& seeds = record.plan.seeds;
  if (!json.contains("seed_order")) seeds.order = seeds.run;  // older versions had one
  if (!json.contains("seed_weights")) seeds.weights = seeds.run;
  if (const auto digest = json.find("digest"); digest != json.end() && !digest->is_null()) {
    record.digest = std::stoull(digest->get<std::string>(), nullptr, 16);
  }
  return record;
}

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw DataError(
      fmt::format("cannot read the record {}", printable(file)), why, "the folder of another run");
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
  Json json = {{"schema_version", RunRecord::kSchemaVersion}};
  json.update(json_of(record));
  json["digest"] = record.digest ? Json(to_hex(*record.digest)) : Json();
  return dump(json, 2);
}

RunRecord run_record_of(const std::string& json, const std::string& file) {
  try {
    const auto parsed = parse_file<Json>(json);
    if (!parsed.is_object()) refuse(file, "it is not a JSON object");
    const Json version = parsed.value("schema_version", Json());
    if (version != RunRecord::kSchemaVersion) {
      refuse(file,
             fmt::format("its schema_version is {}, this program reads {}",
                         printable(version.dump()),
                         RunRecord::kSchemaVersion));
    }
    return record_of(parsed);
  } catch (const Json::parse_error&) {
    refuse(file, "it is not a JSON object");
  } catch (const Json::exception& error) {
    refuse(file, printable(error.what()));
  } catch (const std::domain_error& error) {
    refuse(file, error.what());
  } catch (const std::logic_error&) {  // of std::stoull
    refuse(file, "its digest is not a hexadecimal number");
  }
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
  json["exit_code"] = json_of(record.exit_code);
  json["final"] = json_of(record.final_metrics);
  const bool has_best = result.best.total > 0;
  json["best"] =
      has_best ? Json{{"acc1", result.best.acc1()}, {"epoch", result.best.epoch}} : Json();
  json["digest"] = record.digest ? Json(to_hex(*record.digest)) : Json();
  const std::optional<Error> failure = failure_of(result, directory);
  json["error"] = failure ? json_of(*failure, 0) : Json();
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
