#include "bench/train/report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/settings/exchange_config.h"

namespace lockstep::bench {
namespace {

double mean(std::span<const double> values) {
  return std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Half the width of a 95 % interval as Horovod prints it: 1.96 deviations of single iterations.
double spread(std::span<const double> values) {
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  return 1.96 * std::sqrt(squares / static_cast<double>(values.size()));
}

// Over ranks, of one step.
RankSeconds mean_seconds(const SyntheticReport& report) {
  RankSeconds sum;
  for (const RankSeconds& rank : report.seconds) sum += rank;
  return sum.mean_over(static_cast<double>(report.seconds.size() * report.step_s.size()));
}

// Horovod's word for a rank.
std::string_view unit_of(const SyntheticReport& report) {
  return report.options.device == Device::kCuda ? "GPU" : "CPU";
}

nlohmann::ordered_json milliseconds(double seconds) {
  return seconds * 1e3;
}

}  // namespace

std::vector<double> SyntheticReport::images_per_s() const {
  const auto images = static_cast<double>(options.batch_size * options.batches_per_iteration);
  std::vector<double> speeds(iteration_s.size());
  std::ranges::transform(iteration_s, speeds.begin(), [&](double s) { return images / s; });
  return speeds;
}

std::string opening_text(const SyntheticReport& report) {
  const trainers::ResolvedRun& run = report.run;
  const data::ImageShape& image = report.network.image;
  return fmt::format("Model: {} ({} parameters)\nBatch size: {}\nNumber of {}s: {}\n",
                     report.network.arch,
                     report.parameters,
                     report.options.batch_size,
                     unit_of(report),
                     run.batch.ranks) +
         fmt::format(
             "Images: {}x{}x{}, classes: {}, threads per rank: {}, shards: {}, BN groups: {}, "
             "all-reduce: {}, transport: {}\n",
             image.channels,
             image.height,
             image.width,
             report.network.classes,
             run.threads,
             run.batch.shards,
             run.batch.bn_groups,
             lockstep::name_of(run.request.exchange.algorithm),
             run.transport);
}

std::string iteration_text(const SyntheticReport& report, size_t iteration) {
  return fmt::format("Iter #{}: {:.1f} img/sec per {}\n",
                     iteration,
                     report.images_per_s()[iteration],
                     unit_of(report));
}

std::string closing_text(const SyntheticReport& report) {
  const std::vector<double> speeds = report.images_per_s();
  const double speed = mean(speeds);
  const double half_width = spread(speeds);
  const auto ranks = static_cast<double>(report.run.batch.ranks);
  const RankSeconds seconds = mean_seconds(report);
  return fmt::format(
      "Img/sec per {}: {:.1f} +-{:.1f}\n"
      "Total img/sec on {} {}(s): {:.1f} +-{:.1f}\n"
      "Step: median {:.1f} ms, first done after {:.2f} s; exchange exposed {:.1f} ms, hidden "
      "{:.1f} "
      "ms; peak memory {:.0f} MiB per rank\n",
      unit_of(report),
      speed,
      half_width,
      report.run.batch.ranks,
      unit_of(report),
      ranks * speed,
      ranks * half_width,
      median(report.step_s) * 1e3,
      report.first_step_s,
      seconds.exposed * 1e3,
      seconds.hidden * 1e3,
      std::ranges::max(report.peak_rss_mib));
}

std::string json_text(const SyntheticReport& report) {
  const trainers::ResolvedRun& run = report.run;
  const std::vector<double> per_rank = report.images_per_s();
  const auto ranks = static_cast<double>(run.batch.ranks);
  std::vector<double> all_ranks(per_rank.size());
  std::ranges::transform(per_rank, all_ranks.begin(), [&](double speed) { return speed * ranks; });
  const data::ImageShape& image = report.network.image;
  const RankSeconds seconds = mean_seconds(report);
  std::vector<double> step_ms(report.step_s.size());
  std::ranges::transform(
      report.step_s, step_ms.begin(), [](double step_s) { return step_s * 1e3; });
  const nlohmann::ordered_json json = {
      {"images_per_s", mean(all_ranks)},
      {"images_per_s_spread", spread(all_ranks)},
      {"images_per_s_by_iteration", all_ranks},
      {"step_ms_mean", milliseconds(mean(report.step_s))},
      {"step_ms_median", milliseconds(median(report.step_s))},
      {"step_ms", step_ms},
      {"host_ms_mean", milliseconds(seconds.own)},
      {"comm_exposed_ms", milliseconds(seconds.exposed)},
      {"comm_hidden_ms", milliseconds(seconds.hidden)},
      {"first_step_s", report.first_step_s},
      {"peak_rss_mib", std::ranges::max(report.peak_rss_mib)},
      {"peak_rss_mib_by_rank", report.peak_rss_mib},
      {"loss", report.loss},
      {"device", name_of(report.options.device)},
      {"graph", run.runs_as_graph()},
      {"input", report.options.with_input ? "loader" : "resident"},
      {"autotune", run.request.autotune || !run.request.plan_file.empty()},
      {"cuda_libraries", run.cuda_libraries},
      {"arch", report.network.arch},
      {"parameters", report.parameters},
      {"image", {image.channels, image.height, image.width}},
      {"classes", report.network.classes},
      {"batch_size", report.options.batch_size},
      {"global_batch", run.batch.images},
      {"ranks", run.batch.ranks},
      {"threads", run.threads},
      {"shards", run.batch.shards},
      {"bn_groups", run.batch.bn_groups},
      {"algorithm", lockstep::name_of(run.request.exchange.algorithm)},
      {"transport", run.transport},
      {"opt_level", name_of(run.request.precision.level)},
      {"dtype", run.request.precision.is_mixed() ? name_of(run.request.precision.dtype) : "f32"},
  };
  return json.dump() + "\n";
}

}  // namespace lockstep::bench
