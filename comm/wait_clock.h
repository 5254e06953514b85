// The clock of deadlines. It has a file of its own so that tests/explore can replace it with a
// clock that advances when all ranks sleep.
#pragma once

#include <chrono>

namespace lockstep::comm {

using WaitClock = std::chrono::steady_clock;

}  // namespace lockstep::comm
