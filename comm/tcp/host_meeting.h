// Rank 0's part of a meeting.
#pragma once

#include <vector>

#include "comm/tcp/meeting.h"
#include "comm/tcp/rank_table.h"
#include "core/error.h"

namespace lockstep::comm::tcp {

struct Meeting {
  RankTable table;
  std::vector<UniqueFd> sockets;  // by rank: those of the meeting itself
};

// Waits for all. Errors: those of meet().
Meeting host_meeting(const MeetingPlace& place, int size, const MeetingOptions& options);

Error stopped_error();  // of a rank that is told to stop meanwhile

// An error as bytes for the other ranks, and back.
std::string encode_error(const Error& error);
Error decode_error(const std::string& text);

}  // namespace lockstep::comm::tcp
