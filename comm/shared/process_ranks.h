// Makes processes that exchange messages share memory.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "comm/launch.h"
#include "core/communicator.h"

namespace lockstep::comm {

struct SharedRanks {
  std::unique_ptr<Communicator> ranks;  // null where it cannot be
  std::string problem;                  // why; the same on all ranks
};

// A collective call of `messages`, which the result owns from then on: it ends with `messages`' own
// last wait for the peers. Where there is no result the caller keeps it. Errors: those of
// `messages`.
SharedRanks share_memory(std::unique_ptr<Communicator>& messages,
                         const Launch& launch,
                         std::chrono::milliseconds stall_abort);

}  // namespace lockstep::comm
