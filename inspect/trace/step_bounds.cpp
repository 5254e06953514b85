#include "inspect/trace/step_bounds.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "core/words.h"

namespace lockstep::trainers {
namespace {

constexpr std::array<std::string_view, kBounds> kBoundNames = {
    "compute", "loader", "exchange", "skew", "between steps"};
constexpr size_t kMinTracedSteps = 5;
// A cause is named where it takes at least this share of a usual step in most of the steps. Other
// work on the machine comes in bursts, which are large and leave some steps alone.
constexpr double kLargeShare = 0.2;
constexpr double kStepShare = 0.8;
// A loader hands out batches in bursts, as many as it has threads.
constexpr size_t kLoaderBlock = 4;

size_t bound_index(StepBound bound) {
  return static_cast<size_t>(bound);
}

// The part of a rank's time up to its sums in which it neither waited for the exchange nor for
// images, and was in the step.
struct OwnTime {
  double from = 0;
  double between = 0;
  double compute = 0;

  OwnTime(const RankStep& step, const RankStep* before)
      : from(before != nullptr ? before->summed : step.begin),
        between(before != nullptr ? step.begin - before->end : 0),
        compute(step.summed - from - between - step.loader - step.exchange) {}
};

StepParts parts_of(const TracedStep& step, const TracedStep* before) {
  std::vector<OwnTime> own;
  std::vector<double> busy;
  for (size_t rank = 0; rank < step.ranks.size(); ++rank) {
    own.emplace_back(step.ranks[rank], before != nullptr ? &before->ranks[rank] : nullptr);
    busy.push_back(own.back().compute + own.back().between + step.ranks[rank].loader);
  }
  const auto last = static_cast<size_t>(std::ranges::max_element(busy) - busy.begin());
  double others = own[last].compute;
  if (own.size() > 1) {
    others = -own[last].compute;
    for (const OwnTime& rank : own) others += rank.compute;
    others /= static_cast<double>(own.size() - 1);
  }
  StepParts parts{.step = step.number, .rank = static_cast<int>(last)};
  parts.parts_us[bound_index(StepBound::kCompute)] = std::min(own[last].compute, others);
  parts.parts_us[bound_index(StepBound::kSkew)] = std::max(0.0, own[last].compute - others);
  parts.parts_us[bound_index(StepBound::kLoader)] = step.ranks[last].loader;
  parts.parts_us[bound_index(StepBound::kExchange)] = step.ranks[last].exchange;
  parts.parts_us[bound_index(StepBound::kBetween)] = own[last].between;
  return parts;
}

double quantile(std::vector<double> values, double at) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(at * static_cast<double>(values.size() - 1))];
}

template <class Value>
std::vector<double> values_of(const std::vector<StepParts>& steps, Value&& value) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (const StepParts& step : steps) values.push_back(value(step));
  return values;
}

// Returns the share of a usual step that the bound takes in most of the steps, at least.
double floor_share(const std::vector<StepParts>& steps, StepBound bound) {
  const auto times =
      values_of(steps, [&](const StepParts& step) { return step.parts_us[bound_index(bound)]; });
  const auto totals = values_of(steps, [](const StepParts& step) { return step.total_us(); });
  const bool is_loaders = bound == StepBound::kLoader;
  const auto block = static_cast<std::ptrdiff_t>(is_loaders ? kLoaderBlock : 1);
  std::vector<double> means;
  for (auto first = times.begin(); times.end() - first >= block; ++first) {
    means.push_back(std::accumulate(first, first + block, 0.0) / static_cast<double>(block));
  }
  const double mean =
      std::accumulate(totals.begin(), totals.end(), 0.0) / static_cast<double>(totals.size());
  const double total = is_loaders ? mean : quantile(totals, 0.5);
  return total > 0 ? quantile(means, 1 - kStepShare) / total : 0;
}

double median_share(const std::vector<StepParts>& steps, StepBound bound) {
  return quantile(values_of(steps, [&](const StepParts& step) { return step.share(bound); }), 0.5);
}

// The rank that most steps waited for, and how many did.
struct LastRank {
  int rank = 0;
  size_t steps = 0;
};
LastRank last_rank(const std::vector<StepParts>& steps) {
  std::map<int, size_t> counts;
  for (const StepParts& step : steps) ++counts[step.rank];
  LastRank most_frequent;
  for (const auto& [rank, count] : counts) {
    if (count > most_frequent.steps) most_frequent = {rank, count};
  }
  return most_frequent;
}

// "20-24 compute, 25 loader"
std::string bounds_line(const std::vector<StepParts>& steps) {
  constexpr size_t kRuns = 8;
  std::string line;
  size_t runs = 0;
  for (size_t i = 0; i < steps.size();) {
    const StepBound bound = steps[i].largest();
    size_t end = i + 1;
    while (end < steps.size() && steps[end].largest() == bound) ++end;
    if (++runs > kRuns) return line + fmt::format(", and {} more steps", steps.size() - i);
    const std::string numbers = end - i == 1
                                    ? fmt::format("{}", steps[i].step)
                                    : fmt::format("{}-{}", steps[i].step, steps[end - 1].step);
    line +=
        fmt::format("{}{} {}", line.empty() ? "" : ", ", numbers, kBoundNames[bound_index(bound)]);
    i = end;
  }
  return line;
}

std::string verdict_text(const TraceVerdict& verdict, const std::vector<StepParts>& steps) {
  if (!verdict.abstains.empty()) return "none: " + verdict.abstains;
  const double percent =
      100 * (verdict.bound == StepBound::kCompute ? median_share(steps, verdict.bound)
                                                  : floor_share(steps, verdict.bound));
  switch (verdict.bound) {
    case StepBound::kLoader:
      return fmt::format("the loader: {:.0f} % of the time or more goes into waiting for images",
                         percent);
    case StepBound::kExchange:
      return fmt::format("the exchange: {:.0f} % of a step or more is exposed communication",
                         percent);
    case StepBound::kSkew:
      return fmt::format(
          "rank {} is slow: {:.0f} % of a step or more is its extra time, for "
          "which the others wait",
          verdict.rank,
          percent);
    case StepBound::kBetween:
      return fmt::format(
          "between steps: {:.0f} % of the time or more goes into checkpoints and the like",
          percent);
    case StepBound::kCompute:
      return fmt::format("none: no cause stands out, compute takes {:.0f} % of a step", percent);
  }
  return "";
}

}  // namespace

double StepParts::total_us() const {
  return std::accumulate(parts_us.begin(), parts_us.end(), 0.0);
}

double StepParts::share(StepBound bound) const {
  const double total = total_us();
  return total > 0 ? parts_us[bound_index(bound)] / total : 0;
}

StepBound StepParts::largest() const {
  return static_cast<StepBound>(std::ranges::max_element(parts_us) - parts_us.begin());
}

std::vector<StepParts> step_parts(const std::vector<TracedStep>& steps) {
  std::vector<StepParts> parts;
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool follows = i > 0 && steps[i - 1].number + 1 == steps[i].number;
    parts.push_back(parts_of(steps[i], follows ? &steps[i - 1] : nullptr));
  }
  return parts;
}

TraceVerdict verdict_on(const std::vector<StepParts>& steps) {
  if (steps.size() < kMinTracedSteps) {
    return {.abstains = fmt::format(
                "{} steps are too few, a verdict needs {}", steps.size(), kMinTracedSteps)};
  }
  TraceVerdict verdict;
  double largest = 0;
  const LastRank last = last_rank(steps);
  const auto min_steps = static_cast<size_t>(kStepShare * static_cast<double>(steps.size()));
  for (const StepBound bound :
       {StepBound::kLoader, StepBound::kExchange, StepBound::kSkew, StepBound::kBetween}) {
    if (bound == StepBound::kSkew && last.steps < min_steps) continue;
    const double usual = floor_share(steps, bound);
    if (usual < kLargeShare || usual <= largest) continue;
    largest = usual;
    verdict = {.bound = bound, .rank = bound == StepBound::kSkew ? last.rank : -1, .abstains = {}};
  }
  return verdict;
}

std::string describe_trace(const TraceContents& trace) {
  if (trace.steps.empty()) return "verdict none: the trace has no step of all ranks\n";
  std::string text = fmt::format("steps {} to {} on {}, whose clocks agree within {:.3f} ms\n",
                                 trace.steps.front().number,
                                 trace.steps.back().number,
                                 counted(std::ssize(trace.steps.front().ranks), "rank"),
                                 trace.clock_error_us / 1000);
  const bool is_summed = std::ranges::all_of(trace.steps, [](const TracedStep& step) {
    return std::ranges::all_of(step.ranks, [](const RankStep& rank) { return rank.summed > 0; });
  });
  if (trace.device != "cpu" || !is_summed) {
    return text + "verdict none: the lanes are the host's, which does not wait for the device\n";
  }
  const std::vector<StepParts> steps = step_parts(trace.steps);
  const auto totals =
      values_of(steps, [](const StepParts& step) { return step.total_us() / 1000; });
  text += fmt::format("a step takes {:.2f} ms ({:.2f} to {:.2f}); on the rank that came last:\n",
                      quantile(totals, 0.5),
                      quantile(totals, 0),
                      quantile(totals, 1));
  for (size_t bound = 0; bound < kBounds; ++bound) {
    const auto ms =
        values_of(steps, [&](const StepParts& step) { return step.parts_us[bound] / 1000; });
    text += fmt::format("  {:<13} {:8.2f} ms {:3.0f} %",
                        kBoundNames[bound],
                        quantile(ms, 0.5),
                        100 * median_share(steps, static_cast<StepBound>(bound)));
    if (static_cast<StepBound>(bound) == StepBound::kSkew && trace.steps.front().ranks.size() > 1) {
      const LastRank last = last_rank(steps);
      text +=
          fmt::format("  rank {} came last in {} of {} steps", last.rank, last.steps, steps.size());
    }
    text += "\n";
  }
  text += fmt::format("largest in steps {}\n", bounds_line(steps));
  return text + fmt::format("verdict {}\n", verdict_text(verdict_on(steps), steps));
}

}  // namespace lockstep::trainers
