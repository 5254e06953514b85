#include "trainers/timeline/trace_file.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/version.h"

namespace lockstep::trainers {
namespace {

using Kind = TimelineLane::Kind;
using Clock = Timeline::Clock;

int64_t thread_of(int rank, TimelineLane lane) {
  constexpr int64_t kFirst[] = {0, 1, kFirstBucketThread, kDeviceThread};  // by kind
  return (rank + 1) * kThreadsOfRank + kFirst[static_cast<size_t>(lane.kind)] + lane.index;
}

std::string name_of(TimelineLane lane) {
  if (lane.kind == Kind::kStep) return "step";
  if (lane.kind == Kind::kDevice) return "device";
  return fmt::format("{} {}", lane.kind == Kind::kLoader ? "loader" : "bucket", lane.index);
}

const char* detail_key(const Timeline::Span& span) {
  if (span.lane.kind == Kind::kBucket) return "last_gradient";
  return span.name == kExchangeSpan ? "for" : "op";
}

// A gradient's hook runs between two ops: the op after it begins when the exchange lets it.
std::vector<Timeline::Span> with_late_layers(std::span<const Timeline::Span> spans) {
  std::vector<Timeline::Span> moved(spans.begin(), spans.end());
  Timeline::Span* layer = nullptr;
  for (Timeline::Span& span : moved) {
    if (span.lane.kind != Kind::kStep) continue;
    if (span.name != kExchangeSpan) {
      layer = span.detail.empty() ? nullptr : &span;
    } else if (layer != nullptr && span.detail.empty() && span.end <= layer->end) {
      layer->begin = span.end;
    }
  }
  return moved;
}

class EventWriter {
 public:
  explicit EventWriter(const RankTrace& trace)
      : trace_(trace), spans_(with_late_layers(trace.spans)) {}

  std::string write() {
    name_lanes();
    for (const Timeline::Span& span : spans_) write_span(span);
    for (const Timeline::Span& span : spans_) {
      if (span.name == kBucketSpan) write_flows(span);
    }
    return std::move(text_);
  }

 private:
  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    if (!text_.empty()) text_ += ",\n";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  int64_t process() const { return trace_.rank + 1; }  // some viewers take 0 for the idle task

  double microseconds(Clock::time_point time) const {
    using std::chrono::nanoseconds;
    const auto own = std::chrono::duration_cast<nanoseconds>(time.time_since_epoch());
    return (trace_.clock.on_rank0(own) - static_cast<double>(trace_.origin.count())) / 1000;
  }

  void name_lanes() {
    event(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"rank {}"}}}})",
          process(),
          trace_.rank);
    event(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})",
          process(),
          trace_.rank);
    std::set<TimelineLane> lanes;
    for (const Timeline::Span& span : spans_) lanes.insert(span.lane);
    for (const TimelineLane lane : lanes) {
      const int64_t thread = thread_of(trace_.rank, lane);
      event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})",
            process(),
            thread,
            name_of(lane));
      event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index",)"
            R"("args":{{"sort_index":{}}}}})",
            process(),
            thread,
            thread);
    }
  }

  // Names are those of layers, ops and parameters, which need no escapes.
  void write_span(const Timeline::Span& span) {
    const double begin = microseconds(span.begin);
    event(R"({{"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"name":"{}{}")",
          process(),
          thread_of(trace_.rank, span.lane),
          begin,
          microseconds(span.end) - begin,
          span.name,
          span.number < 0 ? "" : fmt::format(" {}", span.number));
    if (!span.detail.empty()) {
      text_ += fmt::format(R"(,"args":{{"{}":"{}"}})", detail_key(span), span.detail);
    }
    text_ += "}";
  }

  // Arrows: from the pass that made the last gradient to the bucket, and from there to the update.
  void write_flows(const Timeline::Span& bucket) {
    const TimelineLane step;
    arrow("gradients are ready", {step, bucket.begin}, {bucket.lane, bucket.begin});
    const auto update = std::ranges::find_if(spans_, [&](const Timeline::Span& span) {
      return span.name == kUpdateSpan && span.begin >= bucket.end;
    });
    if (update == spans_.end()) return;
    arrow("sums are ready", {bucket.lane, bucket.begin}, {step, update->begin});
  }

  struct Place {
    TimelineLane lane;
    Clock::time_point time;
  };
  void arrow(std::string_view name, const Place& from, const Place& to) {
    const int64_t id = process() * 1'000'000'000 + ++arrows_;
    for (const auto& [phase, place] : {std::pair("s", from), std::pair("f", to)}) {
      event(R"({{"ph":"{}","pid":{},"tid":{},"ts":{:.3f},"id":{},"cat":"bucket","name":"{}"{}}})",
            phase,
            process(),
            thread_of(trace_.rank, place.lane),
            microseconds(place.time),
            id,
            name,
            *phase == 'f' ? R"(,"bp":"e")" : "");
    }
  }

  const RankTrace& trace_;
  const std::vector<Timeline::Span> spans_;
  std::string text_;
  int64_t arrows_ = 0;
};

}  // namespace

std::string trace_header(const TraceHeader& header) {
  nlohmann::json clocks = nlohmann::json::array();
  double error = 0;
  for (size_t rank = 0; rank < header.clocks_before.size(); ++rank) {
    const comm::ClockOffset& before = header.clocks_before[rank];
    const comm::ClockOffset& after = header.clocks_after[rank];
    const double of_rank = comm::ClockMap(before, after).error() / 1000;
    error = std::max(error, of_rank);
    clocks.push_back({{"offset_before_us", before.offset / 1000},
                      {"offset_after_us", after.offset / 1000},
                      {"error_us", of_rank}});
  }
  nlohmann::json about = {{"format", kTraceFormat},
                          {"lockstep", version()},
                          {"first_step", header.first_step},
                          {"last_step", header.last_step},
                          {"ranks", header.clocks_before.size()},
                          {"device", header.device},
                          {"clock_error_us", error},
                          {"clocks", clocks}};
  if (header.device != "cpu") {
    about["note"] =
        "the device's lane says when work was done, the other lanes when the host queued it";
  }
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\n\"traceEvents\":[\n",
                     about.dump());
}

std::string trace_events(const RankTrace& trace) {
  return EventWriter(trace).write();
}

}  // namespace lockstep::trainers
