#include "trainers/report/rank_lines.h"

#include <map>
#include <string_view>

#include <fmt/core.h>

#include "core/words.h"

namespace lockstep::trainers {

std::vector<std::string> host_lines(std::span<const RankPlace> places) {
  std::vector<std::string> lines;
  std::map<std::string_view, size_t> line_of;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const RankPlace& place = places[rank];
    const auto [found, is_new] = line_of.try_emplace(place.host, lines.size());
    if (is_new) lines.push_back(fmt::format("ranks on {}:", printable(place.host)));
    lines[found->second] += fmt::format(
        "{} {} (local {}, {})", is_new ? "" : ",", rank, place.local_rank, printable(place.device));
  }
  return lines;
}

std::vector<std::string> rank_table(std::span<const RankPlace> places) {
  std::vector<std::string> lines = {"rank  local rank  device       pid  host"};
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const RankPlace& place = places[rank];
    lines.push_back(fmt::format("{:4}  {:10}  {:6}  {:8}  {}",
                                rank,
                                place.local_rank,
                                printable(place.device),
                                place.pid,
                                printable(place.host)));
  }
  return lines;
}

}  // namespace lockstep::trainers
