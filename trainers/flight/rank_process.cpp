#include "trainers/flight/rank_process.h"

#include <cerrno>

#include <sys/file.h>

namespace lockstep::trainers {

char process_of(int fd, int pid) {
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return kProcessGone;
  return errno == EWOULDBLOCK ? letter_of(pid) : kProcessUnknown;
}

}  // namespace lockstep::trainers
