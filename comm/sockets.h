// Waiting at sockets of any kind.
#pragma once

#include <chrono>

namespace lockstep::comm {

// 0 when the time is over.
std::chrono::milliseconds time_left(std::chrono::steady_clock::time_point deadline);

// Waits until one of poll()'s `events` is there. Returns false when the time is over.
bool wait_for_events(int socket, short events, std::chrono::steady_clock::time_point deadline);

// True when the other end was closed, as it is when its process ends.
bool is_closed(int socket);

}  // namespace lockstep::comm
