// Replaces comm/wait_clock.h: the explorer's virtual time.
#pragma once

#include "tests/explore/explorer.h"

namespace lockstep::comm {

using WaitClock = explore::VirtualClock;

}  // namespace lockstep::comm
