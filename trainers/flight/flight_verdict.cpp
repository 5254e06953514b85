#include "trainers/flight/flight_verdict.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/operation.h"
#include "core/error.h"
#include "core/timeline.h"
#include "core/words.h"
#include "engine/observe/rank_process.h"
#include "trainers/flight/call_order.h"

namespace lockstep::trainers {
namespace {

using Flights = std::vector<const RankFlight*>;

constexpr int64_t kSecond = 1'000'000'000;
constexpr size_t kShown = 8;  // culprits that are described

double seconds_between(int64_t from, int64_t to) {
  return static_cast<double>(std::max<int64_t>(0, to - from)) / static_cast<double>(kSecond);
}

std::optional<int64_t> exit_code_of(const RankFlight& flight) {
  if (!flight.state.end) return std::nullopt;
  return flight.state.end.number;
}

bool ended_well(const RankFlight& flight) {
  const auto code = exit_code_of(flight);
  return code == static_cast<int64_t>(ExitCode::kDone) ||
         code == static_cast<int64_t>(ExitCode::kStopped);
}

bool gave_up(const RankFlight& flight) {
  return exit_code_of(flight) == static_cast<int64_t>(ExitCode::kPeerLost);
}

bool crashed(const RankFlight& flight) {
  return flight.process == kProcessGone && !flight.state.end;
}

bool failed(const RankFlight& flight) {
  return flight.state.end && !ended_well(flight) && !gave_up(flight);
}

bool cannot_go_on(const RankFlight& flight) {
  const bool is_stopped = flight.process == kProcessStopped && !flight.state.end;
  return crashed(flight) || failed(flight) || is_stopped;
}

// The innermost part that the rank is in; no event: none.
const FlightEvent& innermost_part(const RankFlight& flight) {
  static const FlightEvent none;
  const auto& parts = flight.state.parts;
  const auto last = std::find_if(
      parts.rbegin(), parts.rend(), [](const FlightEvent& part) { return bool(part); });
  return last == parts.rend() ? none : *last;
}

// The call that the rank waits in, or waited in until it gave up; no event: it does not wait.
// Between two checks of its peers, a rank is outside of a wait but still waits for its sums.
const FlightEvent& wait_of(const RankFlight& flight) {
  static const FlightEvent none;
  if (flight.state.wait) return flight.state.wait;
  if (gave_up(flight)) return flight.state.last_call;
  if (innermost_part(flight).text() == kSumsSpan) return flight.state.open_call;
  return none;
}

// The record of a rank that cannot go on may end within a wait.
bool waits(const RankFlight& flight) {
  return wait_of(flight) && !cannot_go_on(flight);
}

// The work of the loader's threads, such as "decode": the part that has lasted the longest.
std::string work_of_loader(const RankFlight& flight, int64_t end) {
  const FlightEvent* longest = nullptr;
  for (const auto& lane : flight.state.loads) {
    const FlightEvent& inner = lane[1] ? lane[1] : lane[0];
    if (inner && (longest == nullptr || inner.time_ns < longest->time_ns)) longest = &inner;
  }
  if (longest == nullptr) return "its loader";
  const std::string work = shown_name(longest->text());
  const std::string what = work == "read"     ? "reads a photo from the disk"
                           : work == "decode" ? "decodes a photo"
                                              : fmt::format("is in \"{}\"", work);
  return fmt::format("its loader, whose thread {} {} for {:.1f} s",
                     longest->lane,
                     what,
                     seconds_between(longest->time_ns, end));
}

std::string in_call(const FlightEvent& call) {
  return fmt::format("call {} \"{}\"", call.number, shown_name(call.text()));
}

std::string list(const std::vector<int>& ranks, std::string_view one, std::string_view many) {
  return comm::list_of_ranks(ranks, one, many);
}

std::vector<int> ranks_of(const Flights& flights) {
  std::vector<int> ranks;
  for (const RankFlight* flight : flights) ranks.push_back(flight->rank());
  return ranks;
}

FlightVerdict none(const std::string& why) {
  return {.cause = FlightCause::kNone, .culprits = {}, .victims = {}, .text = "no verdict: " + why};
}

FlightVerdict verdict_on_calls(const OddRanks& odd, const Flights& flights) {
  const std::string odd_call = fmt::format(
      "call {} is \"{}\" of step {}", odd.call, shown_name(odd.theirs.name), odd.theirs.step);
  const std::string others_call =
      fmt::format("\"{}\" of step {}", shown_name(odd.others.name), odd.others.step);
  if (odd.ranks.empty()) {
    return none(
        fmt::format("the ranks make different calls, {} or {}, and nothing tells which of "
                    "them is right",
                    odd_call,
                    others_call));
  }
  FlightVerdict verdict{
      .cause = FlightCause::kSkipped, .culprits = odd.ranks, .victims = {}, .text = {}};
  for (const RankFlight* flight : flights) {
    if (std::ranges::count(odd.ranks, flight->rank()) == 0)
      verdict.victims.push_back(flight->rank());
  }
  const bool is_ahead = odd.theirs.step >= odd.others.step;
  verdict.text = fmt::format("{} a collective call: there {}, on the other ranks {}",
                             is_ahead ? list(odd.ranks, "skipped", "skipped")
                                      : list(odd.ranks, "made too many of", "made too many of"),
                             odd_call,
                             others_call);
  return verdict;
}

// The median time of the steps in the records; 0: none.
int64_t median_step(const Flights& flights) {
  std::vector<int64_t> times;
  for (const RankFlight* flight : flights) {
    std::map<int64_t, int64_t> begins;
    for (const FlightEvent& event : flight->events) {
      if (event.kind != FlightEvent::Kind::kPart || event.text() != kStepSpan) continue;
      if (event.phase == FlightEvent::Phase::kEntered) {
        begins[event.number] = event.time_ns;
      } else if (const auto begin = begins.find(event.number); begin != begins.end()) {
        times.push_back(event.time_ns - begin->second);
      }
    }
  }
  if (times.empty()) return 0;
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::ranges::nth_element(times, middle);
  return std::max<int64_t>(0, *middle);
}

// Whether a rank has waited long enough for a verdict.
bool is_stalled(const Flights& flights, const Flights& waiting, int64_t end) {
  const bool is_certain = std::ranges::any_of(
      flights, [](const RankFlight* flight) { return gave_up(*flight) || cannot_go_on(*flight); });
  if (is_certain) return true;
  int64_t since = std::numeric_limits<int64_t>::max();
  for (const RankFlight* flight : waiting) since = std::min(since, wait_of(*flight).time_ns);
  return end - since >= std::max(kSecond, 3 * std::min(median_step(flights), 1000 * kSecond));
}

// A wait in a call stays in the record when it fails.
bool gave_up_between_calls(const RankFlight* flight) {
  return gave_up(*flight) && !flight->state.wait && !flight->state.open_call;
}

// Whether a rank cannot go on, or has not come as far as those that wait.
bool shows_culprit(const Flights& suspects, const Flights& waiting) {
  const auto last_call = [](const RankFlight* flight) { return flight->state.last_call.number; };
  const int64_t awaited = last_call(*std::ranges::min_element(waiting, {}, last_call));
  return std::ranges::any_of(suspects, [&](const RankFlight* flight) {
    return flight->state.end || cannot_go_on(*flight) || last_call(flight) < awaited;
  });
}

FlightVerdict lost_message(const Flights& waiting, int64_t end) {
  const RankFlight& first = **std::ranges::min_element(
      waiting, {}, [](const RankFlight* flight) { return wait_of(*flight).number; });
  const FlightEvent& call = wait_of(first);
  Flights there;
  for (const RankFlight* flight : waiting) {
    if (wait_of(*flight).number == call.number) there.push_back(flight);
  }
  return {
      .cause = FlightCause::kLostMessage,
      .culprits = {},
      .victims = ranks_of(there),
      .text = fmt::format("a message was lost, or the transport hangs: all ranks have entered {}, "
                          "and {} in it for {:.1f} s",
                          in_call(call),
                          list(ranks_of(there), "is", "are"),
                          seconds_between(call.time_ns, end))};
}

// The part of a rank that holds the others up.
struct Finding {
  FlightCause cause;
  std::string text;  // after "rank 1"
};

Finding find_part(const RankFlight& flight, int64_t end) {
  const FlightEvent& part = innermost_part(flight);
  const auto lasts = [&](const FlightEvent& event) {
    return fmt::format("for {:.1f} s", seconds_between(event.time_ns, end));
  };
  if (!part || part.text() == kStepSpan) {
    return {FlightCause::kSilent,
            fmt::format("has recorded nothing for {:.1f} s",
                        seconds_between(last_event_of(flight), end))};
  }
  if (part.text() == kLoaderWaitSpan) {
    return {FlightCause::kLoader, "waits for " + work_of_loader(flight, end)};
  }
  if (part.text() == kForwardSpan || part.text() == kBackwardSpan) {
    const FlightEvent& since = flight.state.layer ? flight.state.layer : part;
    return {FlightCause::kLayer, fmt::format("is in {} {}", place_of(flight), lasts(since))};
  }
  const bool saves = part.text().find("saving") != std::string_view::npos ||
                     part.text().find("checkpoint") != std::string_view::npos;
  if (saves)
    return {FlightCause::kSaving,
            fmt::format("is still {} {}: a slow disk", place_of(flight), lasts(part))};
  return {FlightCause::kPart, fmt::format("is in \"{}\" {}", place_of(flight), lasts(part))};
}

Finding find_cause(const RankFlight& flight, int64_t end) {
  if (crashed(flight)) {
    const std::string place = place_of(flight);
    return {FlightCause::kCrashed,
            fmt::format("crashed or was killed{}: its process is gone",
                        place.empty() ? "" : fmt::format(" in {}", place))};
  }
  if (const auto code = exit_code_of(flight)) {
    return {FlightCause::kFailed,
            fmt::format(
                "ended with exit code {}{}",
                *code,
                flight.state.end.text().empty() ? "" : ": " + shown_name(flight.state.end.text()))};
  }
  if (flight.process == kProcessStopped) return {FlightCause::kStopped, "is stopped by a signal"};
  return find_part(flight, end);
}

// Returns the suspects that cannot go on. If all can, returns those that are furthest behind.
// suspects: the ranks that do not wait; at least one.
Flights culprits_of(Flights suspects) {
  const auto last_call = [](const RankFlight* flight) { return flight->state.last_call.number; };
  std::ranges::stable_sort(suspects, {}, last_call);
  const auto goes_on = [](const RankFlight* flight) { return !cannot_go_on(*flight); };
  if (!std::ranges::all_of(suspects, goes_on)) {
    std::erase_if(suspects, goes_on);
  } else {
    const int64_t furthest_behind = last_call(suspects.front());
    std::erase_if(suspects,
                  [&](const RankFlight* flight) { return last_call(flight) > furthest_behind; });
  }
  return suspects;
}

FlightVerdict verdict_on_ranks(const Flights& suspects, const Flights& waiting, int64_t end) {
  const Flights culprits = culprits_of(suspects);
  FlightVerdict verdict{.cause = find_cause(*culprits.front(), end).cause,
                        .culprits = ranks_of(culprits),
                        .victims = ranks_of(waiting),
                        .text = {}};
  std::vector<std::string> findings;
  for (const RankFlight* culprit : std::span(culprits).first(std::min(culprits.size(), kShown))) {
    findings.push_back(fmt::format("rank {} {}", culprit->rank(), find_cause(*culprit, end).text));
  }
  if (culprits.size() > kShown) {
    findings.push_back(fmt::format("{} other ranks cannot go on", culprits.size() - kShown));
  }
  if (!waiting.empty()) {
    const FlightEvent& call = wait_of(**std::ranges::min_element(
        waiting, {}, [](const RankFlight* flight) { return wait_of(*flight).number; }));
    findings.push_back(fmt::format("{} for {} in {}",
                                   list(verdict.victims, "waits", "wait"),
                                   verdict.culprits.size() == 1 ? "it" : "them",
                                   in_call(call)));
  }
  std::ranges::sort(verdict.culprits);
  verdict.text = fmt::format("{}", fmt::join(findings, "; "));
  return verdict;
}

}  // namespace

std::string shown_name(std::string_view text) {
  const bool is_cut = text.size() == std::tuple_size_v<decltype(FlightEvent::name)>;
  return printable(text) + (is_cut ? "..." : "");
}

int64_t last_event_of(const RankFlight& flight) {
  return flight.events.empty() ? 0 : flight.events.back().time_ns;
}

int64_t end_of(const RunFlight& run) {
  int64_t end = 0;
  for (const RankFlight& flight : run.flights) {
    end = std::max({end, last_event_of(flight), flight.seen_ns});
  }
  return end;
}

std::string place_of(const RankFlight& flight) {
  const FlightEvent& part = innermost_part(flight);
  if (!part) return {};
  std::string place = shown_name(part.text());
  const bool is_pass = part.text() == kForwardSpan || part.text() == kBackwardSpan;
  const FlightEvent& layer = flight.state.layer;
  if (!is_pass || !layer || layer.text().empty()) return place;
  const bool is_known = layer.phase == FlightEvent::Phase::kEntered;
  return place + (is_known ? ", layer " : ", after layer ") + shown_name(layer.text());
}

FlightVerdict verdict_on(const RunFlight& run) {
  Flights all, waiting, suspects;
  std::vector<int> unknown;
  for (const RankFlight& flight : run.flights) all.push_back(&flight);
  if (all.empty()) return none("no record can be read");
  for (int rank = 0; rank < run.ranks; ++rank) {
    if (std::ranges::count(ranks_of(all), rank) == 0) unknown.push_back(rank);
  }
  for (const RankFlight* flight : all) {
    if (waits(*flight)) {
      waiting.push_back(flight);
    } else if (!gave_up(*flight)) {
      suspects.push_back(flight);
    }
  }
  if (std::ranges::all_of(all, [](const RankFlight* flight) { return ended_well(*flight); })) {
    return none("the run ended by itself");
  }
  const bool all_stopped = std::ranges::all_of(
      all, [](const RankFlight* flight) { return flight->process == kProcessStopped; });
  if (all_stopped) return none("all ranks are stopped by a signal");
  if (const auto odd = find_odd_ranks(run.flights)) return verdict_on_calls(*odd, all);
  const int64_t end = end_of(run);
  const bool is_failure = std::ranges::any_of(
      all, [](const RankFlight* flight) { return crashed(*flight) || failed(*flight); });
  const auto blame = [&] {
    FlightVerdict verdict = verdict_on_ranks(suspects, waiting, end);
    if (!unknown.empty()) verdict.text += "; " + list(unknown, "has no record", "have no record");
    return verdict;
  };
  if (is_failure) return blame();
  if (waiting.empty()) return none("no rank waits for another");
  if (!is_stalled(all, waiting, end)) return none("the ranks go on: no wait is long");
  if (std::ranges::all_of(waiting, gave_up_between_calls) && !shows_culprit(suspects, waiting)) {
    return none("the ranks gave up between calls, as in a wait for their GPUs");
  }
  if (!suspects.empty()) return blame();
  if (!unknown.empty()) {
    return none("all ranks with a record wait; " + list(unknown, "has none", "have none"));
  }
  return lost_message(waiting, end);
}

}  // namespace lockstep::trainers
