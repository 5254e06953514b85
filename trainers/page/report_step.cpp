#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "trainers/page/chart.h"
#include "trainers/page/report_parts.h"
#include "trainers/report/number_text.h"

namespace lockstep::trainers {
namespace {

constexpr size_t kTracedRanks = 16, kTracedBuckets = 16;  // that a chart of one step shows

// The means in run.json over all steps but the first, on rank 0.
std::string mean_step_chart(const ViewedRun& run) {
  const std::optional<ExchangeSummary>& exchange = run.record.communication;
  if (!exchange || exchange->ranks.size() < 2 || exchange->buckets.empty()) return "";
  const RankSeconds& seconds = exchange->ranks.front().seconds;
  const double own = seconds.own;
  std::vector<Lane> lanes = {
      {.label = "rank 0",
       .spans = {{.begin = 0, .end = own, .color = 0, .title = "own work: " + seconds_text(own)},
                 {.begin = own,
                  .end = own + seconds.exposed,
                  .color = 1,
                  .hatched = true,
                  .title = "exposed communication: " + seconds_text(seconds.exposed)}}}};
  for (const ExchangeSummary::BucketSeconds& bucket : exchange->buckets) {
    if (lanes.size() > kMaxRows) break;
    lanes.push_back(
        {.label = fmt::format("bucket {}", lanes.size()),
         .spans = {{.begin = bucket.ready,
                    .end = bucket.start,
                    .color = 2,
                    .faint = true,
                    .title = "waits: " + seconds_text(bucket.start - bucket.ready)},
                   {.begin = bucket.start,
                    .end = bucket.end,
                    .color = 2,
                    .title = "is summed: " + seconds_text(bucket.end - bucket.start)}}});
  }
  const StackedPart legend[] = {
      {"own work", 0}, {"exposed communication", 1, true}, {"sum of a bucket", 2}};
  return lane_chart({.title = "One step",
                     .unit = "mean on rank 0",
                     .x_label = "since the step began",
                     .wide = true,
                     .scale = AxisScale::kSeconds},
                    legend,
                    lanes);
}

struct WorkLook {
  const char* name = "";
  int color = 0;
};

// By StepWork.
constexpr WorkLook kWorkLooks[] = {{"between its parts", 7},
                                   {"waits for images", 4},
                                   {"forward", 0},
                                   {"backward", 3},
                                   {"waits for sums", 7},
                                   {"exposed communication", 1},
                                   {"optimizer", 2},
                                   {"bucket waits", 6},
                                   {"sum of a bucket", 6}};

LaneSpan lane_span(const StepSpan& span) {
  const WorkLook& look = kWorkLooks[static_cast<size_t>(span.work)];
  const bool is_faint = span.work == StepWork::kStep || span.work == StepWork::kSums ||
                        span.work == StepWork::kBucket;
  return {.begin = span.begin / 1e6,
          .end = span.end / 1e6,
          .color = look.color,
          .hatched = span.work == StepWork::kExchange,
          .faint = is_faint,
          .title = fmt::format("{}: {}", look.name, seconds_text((span.end - span.begin) / 1e6))};
}

bool shows_bucket(const StepSpan& span) {
  return span.work == StepWork::kBucket || span.work == StepWork::kBucketSum;
}

std::vector<Lane> traced_lanes(const TypicalStep& step) {
  std::vector<Lane> lanes;
  for (const std::vector<StepSpan>& spans : step.ranks) {
    if (lanes.size() == kTracedRanks) break;
    Lane& lane = lanes.emplace_back(Lane{.label = fmt::format("rank {}", lanes.size())});
    for (const StepSpan& span : spans) {
      if (!shows_bucket(span)) lane.spans.push_back(lane_span(span));
    }
    // Communication lies on what it holds up.
    std::ranges::stable_partition(lane.spans, [](const LaneSpan& span) { return !span.hatched; });
  }
  const size_t first = lanes.size();
  for (const StepSpan& span : step.ranks.front()) {
    if (!shows_bucket(span) || span.bucket >= static_cast<int64_t>(kTracedBuckets)) continue;
    const size_t at = first + static_cast<size_t>(span.bucket);
    while (lanes.size() <= at) {
      lanes.push_back({.label = fmt::format("bucket {}", lanes.size() - first + 1)});
    }
    lanes[at].spans.push_back(lane_span(span));
  }
  return lanes;
}

std::string traced_step_chart(const TraceContents& trace) {
  const std::vector<Lane> lanes = traced_lanes(trace.typical);
  const StackedPart legend[] = {{"images", 4},
                                {"forward", 0},
                                {"backward", 3},
                                {"optimizer", 2},
                                {"exposed communication", 1, true},
                                {"sum of a bucket on rank 0", 6}};
  const char* const of = trace.device == "cpu" ? "of trace.json, on rank 0's clock"
                                               : "of trace.json, as the host gave out its work";
  return lane_chart({.title = "One step",
                     .unit = fmt::format("step {} {}", count_text(trace.typical.number), of),
                     .x_label = "since the step began",
                     .wide = true,
                     .scale = AxisScale::kSeconds},
                    legend,
                    lanes);
}

}  // namespace

std::string step_chart(const ViewedRun& run) {
  if (run.trace && !run.trace->typical.ranks.empty()) return traced_step_chart(*run.trace);
  return mean_step_chart(run);
}

}  // namespace lockstep::trainers
