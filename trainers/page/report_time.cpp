#include <algorithm>

#include <fmt/core.h>

#include "trainers/page/chart.h"
#include "trainers/page/html.h"
#include "trainers/page/report_parts.h"
#include "trainers/report/number_text.h"

namespace lockstep::trainers {
namespace {

std::vector<StackedPart> time_parts() {
  return {{"own work", 0}, {"exposed communication", 1, true}};
}

std::string rank_chart(const ViewedRun& run) {
  const std::optional<ExchangeSummary>& exchange = run.record.communication;
  if (!exchange) return "";
  int64_t images = 0;
  for (const ExchangeSummary::Rank& rank : exchange->ranks) images += rank.images;
  const double speed = images_per_s_of(run);
  std::vector<StackedRow> rows;
  for (const ExchangeSummary::Rank& rank : exchange->ranks) {
    if (rows.size() == kMaxRows || rank.seconds.own <= 0) break;
    StackedRow row{.label = fmt::format("rank {}", rows.size()),
                   .parts = {rank.seconds.own, rank.seconds.exposed}};
    if (images > 0 && speed > 0) {
      const double rate = speed * static_cast<double>(rank.images) / static_cast<double>(images);
      row.text = fmt::format("{} images/s", count_text(static_cast<int64_t>(rate)));
    }
    rows.push_back(row);
  }
  return stacked_rows({.title = "A step and throughput by rank",
                       .x_label = "mean of all steps but the first",
                       .scale = AxisScale::kSeconds},
                      time_parts(),
                      rows);
}

// The steps up to a little above their 99th percentile, and how many were longer.
std::string step_times_chart(const ViewedRun& run) {
  if (!run.record.step_times || run.record.step_times->count() == 0) return "";
  const StepTimes& times = *run.record.step_times;
  constexpr int kBars = 28;
  const double low = times.bins().front().low_s;
  const double high = std::max(1.05 * times.quantile(0.99), 1.05 * low);
  const double width = (high - low) / kBars;
  std::vector<HistogramBar> bars;
  bars.reserve(kBars);
  for (int i = 0; i < kBars; ++i) bars.push_back({low + i * width, low + (i + 1) * width, 0});
  int64_t longer = 0;
  for (const StepTimes::Bin& bin : times.bins()) {
    // A bin of the record may be wider than a bar: its count is divided among the bars that it
    // covers.
    if (bin.low_s >= high) longer += bin.count;
    for (HistogramBar& bar : bars) {
      const double part = std::min(bar.high, bin.high_s) - std::max(bar.low, bin.low_s);
      if (part > 0) bar.count += static_cast<double>(bin.count) * part / (bin.high_s - bin.low_s);
    }
  }
  const HistogramMark marks[] = {
      {fmt::format("half {}", seconds_text(times.quantile(0.5))), times.quantile(0.5)},
      {fmt::format("90 % {}", seconds_text(times.quantile(0.9))), times.quantile(0.9)},
      {fmt::format("99 % {}", seconds_text(times.quantile(0.99))), times.quantile(0.99)}};
  const std::string beyond =
      longer == 0 ? "" : fmt::format(", {} longer ones left out", count_text(longer));
  return histogram({.title = "Step times",
                    .unit = fmt::format("{} steps of rank 0{}", count_text(times.count()), beyond),
                    .x_label = "time of a step",
                    .scale = AxisScale::kSeconds},
                   bars,
                   marks);
}

std::string memory_chart(const ViewedRun& run,
                         const ChartFrame& frame,
                         std::optional<int64_t> RankRecord::* peak) {
  std::vector<StackedRow> rows;
  for (size_t rank = 0; rank < std::min(run.record.ranks.size(), kMaxRows); ++rank) {
    const std::optional<int64_t>& bytes = run.record.ranks[rank].*peak;
    if (!bytes) continue;
    rows.push_back({.label = fmt::format("rank {}", rank),
                    .parts = {static_cast<double>(*bytes)},
                    .text = bytes_text(*bytes)});
  }
  const StackedPart part[] = {{"memory", 6}};
  return stacked_rows(frame, part, rows);
}

std::string memory_charts(const ViewedRun& run) {
  return memory_chart(run,
                      {.title = "Memory",
                       .unit = "the most that a process held on the host",
                       .wide = true,
                       .scale = AxisScale::kBytes},
                      &RankRecord::peak_bytes) +
         memory_chart(run,
                      {.title = "Memory of the GPU",
                       .unit = "the most that a process held there",
                       .wide = true,
                       .scale = AxisScale::kBytes},
                      &RankRecord::device_peak_bytes);
}

std::string slowest_chart(const ViewedRun& run) {
  const std::vector<SlowestRankSpan>& slowest = run.curves.slowest();
  const size_t ranks = std::min(run.record.ranks.size(), kMaxRows);
  if (ranks < 2) return "";
  std::vector<std::string> rows;
  rows.reserve(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) rows.push_back(fmt::format("rank {}", rank));
  std::vector<StripCell> cells;
  double begin = 0;
  for (const SlowestRankSpan& span : slowest) {
    const auto end = static_cast<double>(span.last);
    const double from = std::exchange(begin, end);
    if (span.rank < 0 || span.rank >= std::ssize(rows)) continue;
    cells.push_back({.begin = from,
                     .end = end,
                     .row = span.rank,
                     .strength = span.skew,
                     .title = fmt::format("to step {}: rank {} was {:.0f} % slower than the others",
                                          count_text(span.last),
                                          span.rank,
                                          100 * span.skew)});
  }
  return strip_chart({.title = "Slowest rank",
                      .unit = "darker: slower than the others' mean, full at 100 %",
                      .x_label = "step",
                      .wide = true},
                     rows,
                     cells);
}

}  // namespace

std::string time_charts(const ViewedRun& run) {
  const std::string charts = rank_chart(run) + step_times_chart(run) + step_chart(run) +
                             slowest_chart(run) + memory_charts(run);
  return charts.empty() ? "" : "<div class=\"grid\">\n" + charts + "</div>\n";
}

std::string bucket_table(const ViewedRun& run) {
  const std::vector<BucketSize>& buckets = run.record.plan.buckets;
  if (buckets.empty()) return "";
  HtmlTable table{
      .head = {"bucket", "tensors", "size", "last gradient", "sum begins", "sum is there"}};
  const bool timed =
      run.record.communication && run.record.communication->buckets.size() == buckets.size();
  for (size_t i = 0; i < buckets.size(); ++i) {
    std::vector<std::string> row = {
        std::to_string(i + 1), count_text(buckets[i].tensors), bytes_text(buckets[i].bytes)};
    const auto times =
        timed ? run.record.communication->buckets[i] : ExchangeSummary::BucketSeconds{};
    for (const double at : {times.ready, times.start, times.end}) {
      row.push_back(timed ? seconds_text(at) : "–");
    }
    table.rows.push_back(row);
  }
  return html(table);
}

}  // namespace lockstep::trainers
