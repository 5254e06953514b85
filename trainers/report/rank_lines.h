// Lists where each rank runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trainers/report/rank_place.h"

namespace lockstep::trainers {

// A line per host: "ranks on node7: 0 (local 0, cpu), 1 (local 1, cpu)".
std::vector<std::string> host_lines(std::span<const RankPlace> places);
// A line per rank under a line of headings.
std::vector<std::string> rank_table(std::span<const RankPlace> places);

}  // namespace lockstep::trainers
