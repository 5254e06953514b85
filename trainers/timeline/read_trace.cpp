#include "trainers/timeline/read_trace.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/timeline.h"
#include "core/words.h"
#include "trainers/report/run_directory.h"
#include "trainers/timeline/trace_file.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kMaxRanks = 100'000;

[[noreturn]] void refuse_trace(const fs::path& file, const std::string& why) {
  throw DataError(fmt::format("{} is no trace of Lockstep's", printable(file.string())),
                  why,
                  "the trace.json of a run with --trace A:B");
}

struct LaneSpan {
  double begin = 0;
  double end = 0;
  int64_t step = 0;  // of a step
};

// Spans of the lanes of steps.
struct LaneOfSteps {
  std::vector<LaneSpan> steps, sums, loader, exchange;
};

class TraceReader {
 public:
  explicit TraceReader(const fs::path& file) : file_(file) {}

  // Keeps what is needed of each event and lets go of the rest.
  void take_event(const Json& event) {
    if (!event.is_object() || event.value("ph", "") != "X") return;
    const int64_t thread = event.value("tid", int64_t{-1});
    const int64_t rank = thread / kThreadsOfRank - 1;
    if (thread % kThreadsOfRank != 0 || rank < 0 || rank >= kMaxRanks) return;
    const double begin = event.value("ts", 0.0);
    const LaneSpan span{begin, begin + event.value("dur", 0.0)};
    const std::string name = event.value("name", "");
    LaneOfSteps& lane = lanes_[rank];
    if (name == kSumsSpan) lane.sums.push_back(span);
    if (name == kExchangeSpan) lane.exchange.push_back(span);
    if (name.starts_with(kLoaderWaitSpan)) lane.loader.push_back(span);
    const std::string prefix = std::string(kStepSpan) + " ";
    if (!name.starts_with(prefix)) return;
    if (const auto number = parse_int(name.substr(prefix.size()))) {
      lane.steps.push_back({span.begin, span.end, *number});
    }
  }

  TraceContents contents(const Json& about) {
    if (!about.is_object() || !about.contains("lockstep")) {
      refuse_trace(file_, "its otherData names no version of Lockstep");
    }
    if (const int format = about.value("format", 0); format != kTraceFormat) {
      refuse_trace(file_, fmt::format("its format is {}, expected {}", format, kTraceFormat));
    }
    TraceContents contents{.device = about.value("device", "cpu"),
                           .clock_error_us = about.value("clock_error_us", 0.0),
                           .steps = {}};
    const auto ranks = static_cast<int64_t>(lanes_.size());
    if (ranks != about.value("ranks", int64_t{0})) {
      refuse_trace(file_, fmt::format("it has lanes of {} ranks", ranks));
    }
    for (const int64_t number : common_steps()) {
      TracedStep step{.number = number, .ranks = {}};
      for (const auto& [rank, lane] : lanes_) step.ranks.push_back(step_of(lane, number));
      contents.steps.push_back(std::move(step));
    }
    return contents;
  }

 private:
  std::set<int64_t> common_steps() const {
    std::map<int64_t, size_t> lanes;
    for (const auto& [rank, lane] : lanes_) {
      std::set<int64_t> steps;
      for (const LaneSpan& span : lane.steps) steps.insert(span.step);
      for (const int64_t step : steps) ++lanes[step];
    }
    std::set<int64_t> common;
    for (const auto& [step, count] : lanes) {
      if (count == lanes_.size()) common.insert(step);
    }
    return common;
  }

  static RankStep step_of(const LaneOfSteps& lane, int64_t number) {
    const LaneSpan& span = *std::ranges::find(lane.steps, number, &LaneSpan::step);
    RankStep step{.begin = span.begin, .end = span.end};
    const auto within = [&](const std::vector<LaneSpan>& spans, double end) {
      const auto first = std::ranges::lower_bound(spans, span.begin, {}, &LaneSpan::begin);
      return std::ranges::subrange(first,
                                   std::ranges::lower_bound(spans, end, {}, &LaneSpan::begin));
    };
    for (const LaneSpan& sums : within(lane.sums, span.end)) step.summed = sums.end;
    for (const LaneSpan& wait : within(lane.loader, span.end)) step.loader += wait.end - wait.begin;
    for (const LaneSpan& held : within(lane.exchange, step.summed)) {
      step.exchange += held.end - held.begin;
    }
    return step;
  }

  const fs::path& file_;
  std::map<int64_t, LaneOfSteps> lanes_;  // by rank; spans in the order of their begins
};

}  // namespace

TraceContents read_trace(const fs::path& path) {
  std::error_code unreadable;
  const fs::path file = fs::is_directory(path, unreadable) ? path / kTraceFile : path;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw EnvironmentError(fmt::format("cannot read {}", printable(file.string())),
                           std::generic_category().message(errno),
                           "a run with --trace A:B leaves a trace.json");
  }
  TraceReader reader(file);
  constexpr int kEventDepth = 2;
  std::string key;
  const auto keep = [&](int depth, Json::parse_event_t what, Json& value) {
    if (what == Json::parse_event_t::key && depth == 1) key = value.get<std::string>();
    if (what != Json::parse_event_t::object_end || depth != kEventDepth || key != "traceEvents") {
      return true;
    }
    reader.take_event(value);
    return false;
  };
  try {
    const Json rest = Json::parse(stream, keep);
    return reader.contents(rest.is_object() ? rest.value("otherData", Json()) : Json());
  } catch (const Json::exception& error) {
    refuse_trace(file, error.what());
  }
}

}  // namespace lockstep::trainers
