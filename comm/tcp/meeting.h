// Ranks without MPI find each other: rank 0 waits for all, then tells each where the others are.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/meeting_place.h"
#include "comm/tcp/rank_listener.h"
#include "core/unique_fd.h"

namespace lockstep::comm::tcp {

struct MeetingOptions {
  std::chrono::milliseconds timeout{};
  Note note = {};                   // of refused connections and ranks that left
  std::function<bool()> stop = {};  // asked now and then; true ends the meeting
};

// A connection to every other rank.
struct Peers {
  std::vector<UniqueFd> sockets;  // by rank; none to this rank
  std::vector<uint64_t> hosts;    // by rank; equal for ranks that may share memory
};

// Every rank calls it, whenever it starts. A connection that is no rank of the job is refused with
// a note and disturbs nobody. The token keeps jobs apart; nothing is encrypted, so the network must
// be trusted as with MPI. Errors: CommError naming the ranks that are absent when the time is over;
// an Error with kStopped where `stop` says so; EnvironmentError for a port that is in use, an
// unknown host and ranks that cannot reach each other; UsageError for a rank that came twice or
// with another number of ranks. Rank 0's are thrown on all ranks that have come. Requires:
// size > 1.
Peers meet(const MeetingPlace& place, int rank, int size, const MeetingOptions& options);

// Names this machine, and what of it this process sees: ranks with other numbers share no memory.
uint64_t host_sharing_memory();

}  // namespace lockstep::comm::tcp
