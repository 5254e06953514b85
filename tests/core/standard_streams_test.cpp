#include "core/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::standard_streams_test {
namespace {

// The exit status of a process that closes descriptors 0 to 2, of which it keeps `kept`, and opens
// them again: 0 if the next file gets the number that it would have had.
int status_without(int kept) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
      if (fd != kept) ::close(fd);
    }
    open_standard_streams();
    const bool writable = ::write(STDOUT_FILENO, "", 0) == 0 && ::write(STDERR_FILENO, "", 0) == 0;
    ::_exit(writable && ::open("/dev/null", O_RDONLY) == next ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(StandardStreams, ClosedOnesAreOpenedAndNoOthers) {
  for (const int kept : {-1, 0, 1, 2}) EXPECT_EQ(status_without(kept), 0) << kept;
}

}  // namespace
}  // namespace lockstep::standard_streams_test
