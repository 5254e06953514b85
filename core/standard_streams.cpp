#include "core/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace lockstep {

void open_standard_streams() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);  // the lowest number that is free
  } while (0 <= fd && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) ::close(fd);
}

}  // namespace lockstep
