// This process: its host and device, its clock, and requests to stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/communicator.h"

namespace lockstep::trainers {

// "2026-01-31T12:00:00Z"
std::string utc_text(std::chrono::system_clock::time_point time);

// Counts from the kernel's start of this process, which is what a user waits for, dynamic linking
// included.
double seconds_since_process_start();

struct RankPlace {
  std::string host;
  int64_t pid = 0;
  int local_rank = 0;
  std::string device = {};  // "cpu", "cuda"
  int64_t cores = 0;        // that this process may use; 0: not known
};

// The peak memory of this process so far, in bytes.
struct MemoryPeaks {
  int64_t host = 0;
  int64_t device = 0;  // 0 where it uses none
};
MemoryPeaks memory_peaks();

RankPlace this_place();  // but rank and device; host "unknown" where the system does not tell

// The places of all ranks, by rank. A collective call.
std::vector<RankPlace> gather_places(Communicator& ranks, const RankPlace& mine);

// Replaces the hosts' names by "host0", "host1", ....
void number_hosts(std::span<RankPlace> places);
// From then on, this_place() uses this host name. Call it before threads need it.
void show_host_as(const std::string& name);

// From then on, SIGINT, SIGTERM and SIGUSR1 ask for a stop at a step that all ranks agree on. A
// SIGINT or SIGTERM at least 100 ms after the first request ends the process at once.
void install_stop_handlers();
// From then on, this process asks for a stop once it is this old. Call it before threads start.
void stop_after(double seconds);
bool stop_requested();
std::string stop_cause();  // "on a signal", "at --time-limit 60"; another rank's is a signal's

}  // namespace lockstep::trainers
