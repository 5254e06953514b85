// This process: its place, its clock, and whether it is asked to stop.
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

// Since the kernel started this process: what a user waits for, dynamic linking included.
double seconds_since_process_start();

struct RankPlace {
  std::string host;
  int64_t pid = 0;
  int local_rank = 0;
  std::string device = {};  // "cpu", "cuda"
  int64_t cores = 0;        // that this process may use; 0: not known
};

// The most memory that this process has held so far, in bytes.
struct MemoryPeaks {
  int64_t host = 0;
  int64_t device = 0;  // 0 where it uses none
};
MemoryPeaks memory_peaks();

RankPlace this_place();  // but rank and device; host "unknown" where the system does not tell

// The places of all ranks, by rank. A collective call.
std::vector<RankPlace> gather_places(Communicator& ranks, const RankPlace& mine);

// Puts "host0", "host1", ... for the hosts' names.
void number_hosts(std::span<RankPlace> places);
// From then on this_place() calls the host so. Call it before threads need it.
void show_host_as(const std::string& name);

// From then on SIGINT, SIGTERM and SIGUSR1 ask for a stop at a step that all ranks agree on. SIGINT
// or SIGTERM ends the process at once where one of them came before, but in the last 100 ms.
void install_stop_handlers();
// From then on this process asks for a stop once it is so old. Call it before threads start.
void stop_after(double seconds);
bool stop_requested();
std::string stop_cause();  // "on a signal", "at --time-limit 60"; another rank's is a signal's

}  // namespace lockstep::trainers
