// A connection between every two processes of one host: it carries file descriptors, and the kernel
// closes it when one of the two ends, however it ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/unique_fd.h"

namespace lockstep::comm {

// Sockets have names in the abstract namespace: nothing lies in a file system, and nothing is left
// behind. Others on the host see the names, so only processes of the same user are let in.
// All ranks take the two steps of the set-up together, the second when all have taken the first.
// Errors: EnvironmentError, in both of them.
class SocketMesh {
 public:
  // Step 1: listens. `token`: the same on all ranks of a job, and on no others.
  SocketMesh(const std::string& token, int rank, int size);
  // Step 2: connects to the ranks below and lets the ranks above in. It does both at once, since
  // strangers can fill a rank's queue, which that rank alone can empty.
  void connect(std::chrono::milliseconds at_most = std::chrono::seconds(10));

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }

  // A message with a descriptor; without one for -1. False where the rank has ended. Errors:
  // EnvironmentError.
  bool send_fd(int to, int fd) const;
  // False when neither a message nor the end of the connection came in time.
  bool wait_for_message(int from, std::chrono::milliseconds at_most) const;
  // Invalid when the message has none, and when there is no message.
  UniqueFd receive_fd(int from) const;

  // The other end is closed: the process has ended.
  bool is_closed(int rank) const;

 private:
  void connect_below();
  void accept_above(std::vector<UniqueFd>& unnamed);
  int64_t missing() const;

  const std::string token_;
  const int rank_;
  UniqueFd listener_;
  std::vector<UniqueFd> peers_;
};

}  // namespace lockstep::comm
