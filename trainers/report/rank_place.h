// Where ranks run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/communicator.h"

namespace lockstep::trainers {

struct RankPlace {
  std::string host;
  int64_t pid = 0;
};

RankPlace this_place();  // of this process; host "unknown" where the system does not tell

// By rank; hosts of more than 255 bytes are cut. A collective call.
std::vector<RankPlace> gather_places(Communicator& ranks, const RankPlace& mine);

}  // namespace lockstep::trainers
