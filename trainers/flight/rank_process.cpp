#include "trainers/flight/rank_process.h"

#include <cerrno>
#include <csignal>

#include <sys/file.h>

namespace lockstep::trainers {

char process_of(int fd, int pid) {
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return kProcessGone;
  if (errno != EWOULDBLOCK) return kProcessUnknown;
  const bool is_gone = kill(pid, 0) != 0 && errno == ESRCH;  // a child that it left has the lock
  return is_gone ? kProcessGone : letter_of(pid);
}

}  // namespace lockstep::trainers
