// Where each rank runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/communicator.h"

namespace lockstep::trainers {

struct RankPlace {
  std::string host;
  int64_t pid = 0;
  int local_rank = 0;
  std::string device = {};  // "cpu", "cuda"
  int64_t cores = 0;        // that this process may use; 0: not known
};

RankPlace this_place();  // but rank and device; host "unknown" where the system does not tell

// The places of all ranks, by rank. A collective call.
std::vector<RankPlace> gather_places(Communicator& ranks, const RankPlace& mine);

// Replaces the hosts' names by "host0", "host1", ....
void number_hosts(std::span<RankPlace> places);
// From then on, this_place() uses this host name. Call it before threads need it.
void show_host_as(const std::string& name);

}  // namespace lockstep::trainers
