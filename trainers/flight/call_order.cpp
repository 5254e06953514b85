#include "trainers/flight/call_order.h"

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::trainers {
namespace {

// Ranks that made the same call.
struct CallGroup {
  CallPlace place;
  std::vector<int> ranks;
};

// By number, as far as the record goes.
std::map<int64_t, CallPlace> calls_of(const RankFlight& flight) {
  std::map<int64_t, CallPlace> calls;
  const auto add = [&](const FlightEvent& event) {
    if (!event || event.kind != FlightEvent::Kind::kCall) return;
    if (event.phase != FlightEvent::Phase::kEntered) return;
    calls.try_emplace(event.number, CallPlace{event.step, std::string(event.text())});
  };
  std::ranges::for_each(flight.events, add);
  add(flight.state.last_call);
  return calls;
}

std::optional<OddRanks> odd_ranks_in(int64_t call, const std::vector<CallGroup>& groups) {
  if (groups.size() < 2) return std::nullopt;
  const auto size_of_group = [](const CallGroup& group) { return group.ranks.size(); };
  const auto step_of_group = [](const CallGroup& group) { return group.place.step; };
  const CallGroup& largest = *std::ranges::max_element(groups, {}, size_of_group);
  const CallGroup& furthest = *std::ranges::max_element(groups, {}, step_of_group);
  const bool has_majority = std::ranges::count(groups, size_of_group(largest), size_of_group) == 1;
  OddRanks odd{.ranks = {}, .call = call, .theirs = {}, .others = {}};
  for (const CallGroup& group : groups) {
    const bool is_odd = has_majority ? &group != &largest : &group == &furthest;
    (is_odd ? odd.theirs : odd.others) = group.place;
    if (is_odd) odd.ranks.insert(odd.ranks.end(), group.ranks.begin(), group.ranks.end());
  }
  if (!has_majority && odd.theirs.step == odd.others.step) odd.ranks.clear();
  std::ranges::sort(odd.ranks);
  return odd;
}

}  // namespace

std::optional<OddRanks> find_odd_ranks(const std::vector<RankFlight>& flights) {
  std::map<int64_t, std::vector<CallGroup>> calls;
  for (const RankFlight& flight : flights) {
    for (const auto& [call, place] : calls_of(flight)) {
      std::vector<CallGroup>& groups = calls[call];
      const auto same = std::ranges::find(groups, place, &CallGroup::place);
      if (same != groups.end()) {
        same->ranks.push_back(flight.rank());
      } else {
        groups.push_back({place, {flight.rank()}});
      }
    }
  }
  for (const auto& [call, groups] : calls) {
    if (auto odd = odd_ranks_in(call, groups)) return odd;
  }
  return std::nullopt;
}

}  // namespace lockstep::trainers
