// Finds ranks whose collective calls differ from those of the others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainers/flight/read_flight.h"

namespace lockstep::trainers {

// A call as one rank made it.
struct CallPlace {
  int32_t step = 0;
  std::string name;  // as it was found

  bool operator==(const CallPlace& other) const = default;
};

// The first call that is not the same on all ranks under one number.
struct OddRanks {
  std::vector<int>
      ranks;  // the minority, or those ahead in a tie; none: it is not known who is right
  int64_t call = 0;
  CallPlace theirs;
  CallPlace others;
};

// Nothing: all ranks made the same calls, as far as their records go.
std::optional<OddRanks> find_odd_ranks(const std::vector<RankFlight>& flights);

}  // namespace lockstep::trainers
