#include "inspect/flight/describe_flight.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "engine/observe/rank_process.h"
#include "inspect/runs/text_table.h"
#include "trainers/flight/flight_verdict.h"

namespace lockstep::trainers {
namespace {

std::string process_text(const RankFlight& flight) {
  switch (flight.process) {
    case kProcessGone:
      return flight.state.end ? "ended" : "gone";
    case kProcessStopped:
      return "stopped";
    case 'R':
      return flight.state.end ? "ended" : "runs";
    case 'S':
      return "sleeps";
    case 'D':
      return "in the kernel";
    default:
      return "unknown";
  }
}

std::string call_text(const FlightEvent& call) {
  return call ? fmt::format("{} {}", call.number, shown_name(call.text())) : "-";
}

std::string seconds_ago(int64_t time_ns, int64_t end) {
  return fmt::format("{:.1f} s", static_cast<double>(std::max<int64_t>(0, end - time_ns)) / 1e9);
}

std::vector<std::string> row_of(const RankFlight& flight, int64_t end) {
  const std::string place = place_of(flight);
  return {fmt::format("{}", flight.rank()),
          process_text(flight),
          flight.events.empty() ? "-" : fmt::format("{}", flight.events.back().step),
          place.empty() ? "-" : place,
          call_text(flight.state.last_call),
          flight.state.wait        ? "waits"
          : flight.state.open_call ? "open"
                                   : "left",
          flight.events.empty() ? "-" : seconds_ago(last_event_of(flight), end)};
}

}  // namespace

std::string describe_flight(const RunFlight& run) {
  std::vector<std::vector<std::string>> rows = {
      {"rank", "process", "step", "in", "last call", "", "last event"}};
  const int64_t end = end_of(run);
  for (const RankFlight& flight : run.flights) rows.push_back(row_of(flight, end));
  std::string text = text_table(rows, 6);
  for (const std::string& problem : run.problems) text += "no record of " + problem + "\n";
  const FlightVerdict verdict = verdict_on(run);
  if (verdict.cause != FlightCause::kNone) text += "verdict  ";
  return text + verdict.text + "\n";
}

}  // namespace lockstep::trainers
