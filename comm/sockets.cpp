#include "comm/sockets.h"

#include <algorithm>
#include <climits>
#include <cstdint>

#include <poll.h>

namespace lockstep::comm {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

std::chrono::milliseconds time_left(Clock::time_point deadline) {
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()));
}

bool wait_for_events(int socket, short events, Clock::time_point deadline) {
  pollfd poll{.fd = socket, .events = events, .revents = 0};
  while (true) {  // signals interrupt poll()
    const auto left = static_cast<int>(std::min<int64_t>(time_left(deadline).count(), INT_MAX));
    if (::poll(&poll, 1, left) > 0) return true;
    if (left == 0) return false;
  }
}

bool is_closed(int socket) {
  pollfd poll{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&poll, 1, 0) > 0 && (poll.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace lockstep::comm
