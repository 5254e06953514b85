// Wall-clock time as text. Only for names and logs: timing uses a monotonic clock.
#pragma once

#include <chrono>
#include <string>

namespace lockstep::trainers {

// "2026-01-31T12:00:00Z"
std::string utc_text(std::chrono::system_clock::time_point time);

}  // namespace lockstep::trainers
