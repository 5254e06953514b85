#include "trainers/timeline/read_trace.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/input_file.h"
#include "core/timeline.h"
#include "core/words.h"
#include "trainers/config/file_json.h"
#include "trainers/config/run_files.h"
#include "trainers/report/run_directory.h"
#include "trainers/timeline/trace_file.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxRanks = 100'000;

[[noreturn]] void refuse_trace(const fs::path& file, const std::string& why) {
  throw DataError(fmt::format("{} is not a trace of Lockstep's", printable(file.string())),
                  why,
                  "the trace.json of a run with --trace A:B");
}

constexpr std::pair<std::string_view, StepWork> kWorkNames[] = {
    {kSumsSpan, StepWork::kSums},
    {kExchangeSpan, StepWork::kExchange},
    {kForwardSpan, StepWork::kForward},
    {kBackwardSpan, StepWork::kBackward},
    {kUpdateSpan, StepWork::kUpdate},
};

// Returns the work of a span in a lane of steps; nothing for spans that do not count, such as
// layers.
std::optional<StepWork> work_of(std::string_view name) {
  if (name.starts_with(kLoaderWaitSpan)) return StepWork::kLoader;
  for (const auto& [known, work] : kWorkNames) {
    if (name == known) return work;
  }
  return std::nullopt;
}

// The spans of a rank that count, in the order of their begins.
struct RankLanes {
  std::map<int64_t, StepSpan> steps;  // by number
  std::vector<StepSpan> work;
};

// Returns the spans that begin between the two times; none where the end comes first.
auto begun_within(const RankLanes& lanes, double begin, double end) {
  const auto first = std::ranges::lower_bound(lanes.work, begin, {}, &StepSpan::begin);
  const auto last = lanes.work.end();
  return std::ranges::subrange(first,
                               std::ranges::lower_bound(first, last, end, {}, &StepSpan::begin));
}

RankStep step_of(const RankLanes& lanes, int64_t number) {
  const StepSpan& span = lanes.steps.at(number);
  RankStep step{.begin = span.begin, .end = span.end};
  for (const StepSpan& work : begun_within(lanes, span.begin, span.end)) {
    if (work.work == StepWork::kSums) step.summed = work.end;
    if (work.work == StepWork::kLoader) step.loader += work.end - work.begin;
  }
  for (const StepSpan& work : begun_within(lanes, span.begin, step.summed)) {
    if (work.work == StepWork::kExchange) step.exchange += work.end - work.begin;
  }
  return step;
}

class TraceReader {
 public:
  explicit TraceReader(const fs::path& file) : file_(file) {}

  // Keeps the needed part of each event and drops the rest.
  void take_event(const FileJson& event) {
    if (!event.is_object() || event.value("ph", "") != "X") return;
    const int64_t thread = event.value("tid", int64_t{-1});
    const int64_t rank = thread / kThreadsOfRank - 1;
    if (rank < 0 || rank >= kMaxRanks) return;
    const int64_t lane = thread % kThreadsOfRank;
    const double begin = event.value("ts", 0.0);
    StepSpan span{.begin = begin, .end = begin + event.value("dur", 0.0)};
    const std::string name = event.value("name", "");
    if (lane >= kFirstBucketThread) {
      span.work = name.starts_with(kBucketSpan) ? StepWork::kBucket : StepWork::kBucketSum;
      span.bucket = lane - kFirstBucketThread;
      lanes_[rank].work.push_back(span);
    } else if (lane == 0) {
      take_step(name, span, lanes_[rank]);
    }
  }

  TraceContents contents(const FileJson& about) {
    if (!about.is_object() || !about.contains("lockstep")) {
      refuse_trace(file_, "its otherData names no version of Lockstep");
    }
    if (const int format = about.value("format", 0); format != kTraceFormat) {
      refuse_trace(file_, fmt::format("its format is {}, expected {}", format, kTraceFormat));
    }
    TraceContents contents{.device = about.value("device", "cpu"),
                           .clock_error_us = about.value("clock_error_us", 0.0),
                           .steps = {},
                           .typical = {}};
    const auto ranks = static_cast<int64_t>(lanes_.size());
    if (ranks != about.value("ranks", int64_t{0})) {
      refuse_trace(file_, fmt::format("it has lanes of {} ranks", ranks));
    }
    for (auto& [rank, lanes] : lanes_) {
      std::ranges::stable_sort(lanes.work, {}, &StepSpan::begin);  // of several lanes
      check_steps(lanes);
    }
    for (const int64_t number : common_steps()) {
      TracedStep step{.number = number, .ranks = {}};
      for (const auto& [rank, lanes] : lanes_) step.ranks.push_back(step_of(lanes, number));
      contents.steps.push_back(std::move(step));
    }
    contents.typical = typical_of(contents.steps);
    return contents;
  }

 private:
  // Steps follow one another, so a span belongs to one of them.
  void check_steps(const RankLanes& lanes) const {
    size_t counted = 0;
    for (const auto& [number, step] : lanes.steps) {
      counted += begun_within(lanes, step.begin, step.end).size();
    }
    if (counted > 2 * lanes.work.size()) refuse_trace(file_, "its steps overlap");
  }

  static void take_step(std::string_view name, StepSpan span, RankLanes& lanes) {
    constexpr std::string_view kStep = kStepSpan;
    if (name.starts_with(kStep) && name.substr(kStep.size()).starts_with(' ')) {
      const auto number = parse_int(name.substr(kStep.size() + 1));
      if (number) lanes.steps.emplace(*number, span);
    } else if (const auto work = work_of(name)) {
      span.work = *work;
      lanes.work.push_back(span);
    }
  }

  std::set<int64_t> common_steps() const {
    std::map<int64_t, size_t> counts;
    for (const auto& [rank, lanes] : lanes_) {
      for (const auto& [number, span] : lanes.steps) ++counts[number];
    }
    std::set<int64_t> common;
    for (const auto& [step, count] : counts) {
      if (count == lanes_.size()) common.insert(step);
    }
    return common;
  }

  TypicalStep typical_of(const std::vector<TracedStep>& steps) const {
    if (steps.empty()) return {};
    std::vector<std::pair<double, int64_t>> times;
    for (const TracedStep& step : steps) {
      const RankStep& rank0 = step.ranks.front();
      times.emplace_back(rank0.end - rank0.begin, step.number);
    }
    std::ranges::sort(times);
    TypicalStep typical{.number = times[times.size() / 2].second, .ranks = {}};
    double origin = 1e300;
    for (const auto& [rank, lanes] : lanes_) {
      origin = std::min(origin, lanes.steps.at(typical.number).begin);
    }
    for (const auto& [rank, lanes] : lanes_) {
      const StepSpan& step = lanes.steps.at(typical.number);
      std::vector<StepSpan>& spans = typical.ranks.emplace_back();
      spans.push_back(step);
      for (const StepSpan& span : begun_within(lanes, step.begin, step.end)) spans.push_back(span);
      for (StepSpan& span : spans) {
        span.begin -= origin;
        span.end -= origin;
      }
    }
    return typical;
  }

  const fs::path& file_;
  std::map<int64_t, RankLanes> lanes_;  // by rank
};

void check_file(const fs::path& file) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  std::string why;
  try {
    const uint64_t size = InputFile(file).size();
    if (size > kMost) why = fmt::format("it has {} bytes, at most {} are read", size, kMost);
  } catch (const EnvironmentError& error) {
    why = error.why();
  }
  if (why.empty()) return;
  throw EnvironmentError(fmt::format("cannot read {}", printable(file.string())),
                         why,
                         "a run with --trace A:B leaves a trace.json");
}

}  // namespace

TraceContents read_trace(const fs::path& path) {
  std::error_code unreadable;
  const fs::path file = fs::is_directory(path, unreadable) ? path / kTraceFile : path;
  check_file(file);
  std::ifstream stream(file, std::ios::binary);
  TraceReader reader(file);
  // Of each list only what is used is kept: nlohmann searches it whenever an object in it ends.
  using Event = FileJson::parse_event_t;
  constexpr int kEventDepth = 2;
  bool is_events = false;
  const auto keep = [&](int depth, Event what, FileJson& value) {
    if (what == Event::key && depth == 1) {
      is_events = value == "traceEvents";
      return is_events || value == "otherData";
    }
    const bool begins = what == Event::array_start || what == Event::object_start;
    if (depth != kEventDepth) return !begins || depth < kEventDepth;
    if (!is_events) return !begins;
    if (what == Event::object_end) reader.take_event(value);
    return what == Event::object_start;
  };
  try {
    const FileJson rest = FileJson::parse(stream, keep);
    return reader.contents(rest.is_object() ? rest.value("otherData", FileJson()) : FileJson());
  } catch (const FileJson::exception& error) {
    refuse_trace(file, printable(error.what()));
  }
}

}  // namespace lockstep::trainers
