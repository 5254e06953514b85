// The clock of deadlines. A file of its own: in tests/explore time passes when all ranks sleep.
#pragma once

#include <chrono>

namespace lockstep::comm {

using WaitClock = std::chrono::steady_clock;

}  // namespace lockstep::comm
