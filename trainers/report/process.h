// This process: its place, its clock, and whether a signal asked it to stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/communicator.h"

namespace lockstep::trainers {

// "2026-01-31T12:00:00Z"
std::string utc_text(std::chrono::system_clock::time_point time);

// Since the kernel started this process: what a user waits for, dynamic linking included.
double seconds_since_process_start();

struct RankPlace {
  std::string host;
  int64_t pid = 0;
  int local_rank = 0;
  std::string device = {};  // "cpu", "cuda"
};

RankPlace this_place();  // host and process; host "unknown" where the system does not tell

// The places of all ranks, by rank. A collective call.
std::vector<RankPlace> gather_places(Communicator& ranks, const RankPlace& mine);

// From then on SIGINT, SIGTERM and SIGUSR1 ask for a stop at a step that all ranks agree on; a
// second such signal ends the process at once.
void install_stop_handlers();
bool stop_requested();

}  // namespace lockstep::trainers
