// The file of a traced run: Chrome's trace format, as Perfetto reads it.
// Source: "Trace Event Format", the JSON object format with complete events ("X"), metadata ("M")
// and flows ("s", "f"). Times are microseconds on rank 0's clock since the trace began.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/clock_offsets.h"
#include "core/timeline.h"

namespace lockstep::trainers {

inline constexpr int kTraceFormat = 1;
// A thread's number in the file is (rank + 1) * kThreadsOfRank + its lane's: 0 of steps, from 1 on
// of loader threads, kDeviceThread of its GPU, from kFirstBucketThread on of buckets.
inline constexpr int64_t kThreadsOfRank = 100'000;
inline constexpr int64_t kDeviceThread = 999;
inline constexpr int64_t kFirstBucketThread = 1000;

struct TraceHeader {
  int64_t first_step = 0;  // from 1
  int64_t last_step = 0;
  std::string_view device;
  std::vector<comm::ClockOffset> clocks_before;  // by rank
  std::vector<comm::ClockOffset> clocks_after;
};

// Returns the file up to the first event. Each part of the file ends without a comma.
std::string trace_header(const TraceHeader& header);

struct RankTrace {
  int rank = 0;
  std::span<const Timeline::Span> spans;  // as Timeline::spans() orders them
  comm::ClockMap clock;
  std::chrono::nanoseconds origin{};  // of the trace, on rank 0's clock
};

// Returns the events of a rank, separated by commas.
std::string trace_events(const RankTrace& trace);

inline constexpr std::string_view kTraceEnd = "\n]}\n";

}  // namespace lockstep::trainers
