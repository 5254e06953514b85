// Times for names and logs. Timing uses a monotonic clock.
#pragma once

#include <chrono>
#include <string>

namespace lockstep::trainers {

// "2026-01-31T12:00:00Z"
std::string utc_text(std::chrono::system_clock::time_point time);

// Since the kernel started this process: what a user waits for, dynamic linking included.
double seconds_since_process_start();

}  // namespace lockstep::trainers
