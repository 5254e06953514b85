#include "comm/die.h"

#include <cstdio>
#include <iostream>

#include <unistd.h>

namespace lockstep::comm {

void die(ExitCode code) {
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(static_cast<int>(code));
}

void die(const Error& why) {
  std::fputs(format_error(why).c_str(), stderr);
  die(why.code());
}

}  // namespace lockstep::comm
