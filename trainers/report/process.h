// The time and the memory that this process has used, and requests to stop it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::trainers {

// "2026-01-31T12:00:00Z"
std::string utc_text(std::chrono::system_clock::time_point time);

// Counts from the kernel's start of this process, which is what a user waits for, dynamic linking
// included.
double seconds_since_process_start();

// The peak memory of this process so far, in bytes.
struct MemoryPeaks {
  int64_t host = 0;
  int64_t device = 0;  // 0 where it uses none
};
MemoryPeaks memory_peaks();

// From then on, SIGINT, SIGTERM and SIGUSR1 ask for a stop at a step that all ranks agree on. A
// SIGINT or SIGTERM at least 100 ms after the first request ends the process at once.
void install_stop_handlers();
// From then on, this process asks for a stop once it is this old. Call it before threads start.
void stop_after(double seconds);
bool stop_requested();
std::string stop_cause();  // "on a signal", "at --time-limit 60"; another rank's is a signal's

}  // namespace lockstep::trainers
