// The time and the memory that this process has used.
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

}  // namespace lockstep::trainers
