// In place of the product's: the explorer's time.
#pragma once

#include "tests/explore/explorer.h"

namespace lockstep::comm {

using WaitClock = explore::VirtualClock;

}  // namespace lockstep::comm
