#include "bench/allreduce/report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/version.h"
#include "engine/settings/exchange_config.h"
#include "trainers/config/rank_machine.h"
#include "trainers/report/process.h"

namespace lockstep::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string bool_text(bool value) {  // nccl-tests writes booleans as strings
  return value ? "true" : "false";
}

Json config_json(const Report& report) {
  const BenchOptions& options = report.options;
  Json config = {{"nthreads", 1},
                 {"ngpus", 1},
                 {"minimum_bytes", options.sizes.min_bytes},
                 {"maximum_bytes", options.sizes.max_bytes}};
  if (options.sizes.step_factor > 1) {
    config["step_factor"] = options.sizes.step_factor;
  } else {
    config["step_bytes"] = options.sizes.step_bytes;
  }
  config["warmup_iters"] = options.warmup_iterations;
  config["iterations"] = options.iterations;
  config["aggregated_iterations"] = 1;
  config["validation"] = options.checks;
  config["graph"] = 0;
  config["blocking_collectives"] = bool_text(options.blocking != Blocking::kNone);
  config["average"] = static_cast<int>(options.rank_time);
  config["transport"] = report.transport;
  Json devices = Json::array();
  for (const trainers::RankPlace& place : report.places) {
    devices.push_back({{"rank", devices.size()},
                       {"group", 0},
                       {"pid", place.pid},
                       {"hostname", place.host},
                       {"device", 0},
                       {"device_info", "cpu"}});
  }
  config["devices"] = devices;
  return config;
}

Json side_json(const Side& side, int64_t bytes, int ranks) {
  const double bandwidth = gigabytes_per_second(bytes, side.mean());
  return {{"time", side.mean() * 1e6},
          {"alg_bw", bandwidth},
          {"bus_bw", bandwidth * bus_factor(ranks)},
          {"nwrong", side.wrong == Side::kUnchecked ? Json() : Json(side.wrong)}};
}

double percentile(const std::vector<double>& sorted, size_t percent) {  // nearest rank
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

Json times_json(const Side& side) {
  std::vector<double> times = side.seconds;
  for (double& time : times) time *= 1e6;
  std::vector<double> sorted = times;
  std::ranges::sort(sorted);
  const double mean = side.mean() * 1e6;
  double squares = 0;
  for (const double time : times) squares += (time - mean) * (time - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(times.size()));
  return {{"min_us", sorted.front()},
          {"max_us", sorted.back()},
          {"avg_us", mean},
          {"p50_us", percentile(sorted, 50)},
          {"p95_us", percentile(sorted, 95)},
          {"p99_us", percentile(sorted, 99)},
          {"stdev_us", deviation},
          {"cv_pct", mean > 0 ? 100 * deviation / mean : 0},
          {"times_us", times}};
}

Json result_json(const Measurement& measurement, int ranks) {
  const int64_t bytes = measurement.bytes();
  return {{"size", bytes},
          {"count", measurement.count},
          {"type", datatype_name(measurement.dtype)},
          {"redop", "sum"},
          {"root", "-1"},
          {"algorithm", lockstep::name_of(measurement.algorithm)},
          {"out_of_place", side_json(measurement.out_of_place, bytes, ranks)},
          {"out_of_place_per_iter", times_json(measurement.out_of_place)},
          {"in_place", side_json(measurement.in_place, bytes, ranks)},
          {"in_place_per_iter", times_json(measurement.in_place)},
          {"actual_iterations", measurement.in_place.seconds.size()},
          {"experiment_name", "bench_allreduce"}};
}

std::string side_text(const Side& side, int64_t bytes, int ranks) {
  const double bandwidth = gigabytes_per_second(bytes, side.mean());
  const std::string wrong =
      side.wrong == Side::kUnchecked ? "N/A" : fmt::format("{:g}", static_cast<double>(side.wrong));
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}",
                     fit(side.mean() * 1e6, 7),
                     fit(bandwidth, 6),
                     fit(bandwidth * bus_factor(ranks), 6),
                     wrong);
}

}  // namespace

std::string opening_text(const Report& report) {
  const BenchOptions& options = report.options;
  const SizeRange& sizes = options.sizes;
  const bool multiply = sizes.step_factor > 1;
  std::string text = fmt::format(
      "# lockstep version {} ranks {} transport {}\n"
      "# Collective test starting: bench_allreduce\n"
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} "
      "agg iters: 1 validation: {} graph: 0 unalign: 0\n",
      version(),
      report.places.size(),
      report.transport,
      sizes.min_bytes,
      sizes.max_bytes,
      multiply ? sizes.step_factor : sizes.step_bytes,
      multiply ? "factor" : "bytes",
      options.warmup_iterations,
      options.iterations,
      options.checks);
  if (!report.note.empty()) text += fmt::format("# {}\n", report.note);
  text += "#\n# Using devices\n";
  for (size_t rank = 0; rank < report.places.size(); ++rank) {
    text += fmt::format("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device cpu\n",
                        rank,
                        0,
                        report.places[rank].pid,
                        report.places[rank].host);
  }
  return text;
}

std::string column_text(Algorithm algorithm) {
  constexpr std::string_view kHeadings =
      "#                                                              out-of-place             "
      "          in-place\n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     "
      "time   algbw   busbw  #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             "
      "(us)  (GB/s)  (GB/s)        \n";
  return fmt::format("#\n# Algorithm: {}\n#\n{}", lockstep::name_of(algorithm), kHeadings);
}

std::string row_text(const Measurement& measurement, int ranks) {
  const int64_t bytes = measurement.bytes();
  return fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:>6}",
                     bytes,
                     measurement.count,
                     datatype_name(measurement.dtype),
                     "sum",
                     -1) +
         side_text(measurement.out_of_place, bytes, ranks) +
         side_text(measurement.in_place, bytes, ranks) + "\n";
}

std::string closing_text(const Totals& totals) {
  return fmt::format("# {:<20} : {} {}\n# {:<20} : {:g}\n#\n",
                     "Out of bounds values",
                     totals.failed,
                     totals.failed == 0 ? "OK" : "FAILED",
                     "Avg bus bandwidth",
                     totals.bus_bandwidth);
}

std::string fit(double value, size_t width) {
  for (int decimals = 2; decimals >= 0; --decimals) {
    std::string text = fmt::format("{:.{}f}", value, decimals);
    if (text.size() <= width) return text;
  }
  const std::string text = fmt::format("{:.1e}", value);
  return text.size() <= width ? text : fmt::format("{:.0e}", value);
}

std::string json_text(const Report& report) {
  const int ranks = static_cast<int>(report.places.size());
  const Totals totals = totals_of(report.measurements, ranks);
  Json results = Json::array();
  for (const Measurement& measurement : report.measurements) {
    results.push_back(result_json(measurement, ranks));
  }
  const Json json = {
      {"version", 2},  // of nccl-tests' form
      {"start_time", trainers::utc_text(report.start)},
      {"args", report.arguments},
      {"lockstep_version", version()},
      {"config", config_json(report)},
      {"results", results},
      {"out_of_bounds", {{"count", totals.failed}, {"okay", bool_text(totals.failed == 0)}}},
      {"average_bus_bandwidth", {{"bandwidth", totals.bus_bandwidth}, {"okay", "unchecked"}}},
      {"errors", Json::array()},
      {"end_time", trainers::utc_text(report.end)}};
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::bench
