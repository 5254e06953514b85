// The other ranks' part of a meeting.
#pragma once

#include <cstdint>

#include "comm/tcp/host_meeting.h"
#include "comm/tcp/meeting.h"

namespace lockstep::comm::tcp {

struct JoinedMeeting {
  Meeting meeting;    // its one socket is rank 0's
  UniqueFd listener;  // for the ranks above
};

// Looks for rank 0 until it is there, then waits for all. Errors: those of meet().
JoinedMeeting join_meeting(const MeetingPlace& place,
                           int rank,
                           int size,
                           const MeetingOptions& options);

}  // namespace lockstep::comm::tcp
