#include "comm/die.h"

#include <cstdio>
#include <iostream>

#include <unistd.h>

namespace lockstep::comm {
namespace {

void print_error(const Error& why) {
  std::fputs(format_error(why).c_str(), stderr);
}

void (*tell_error)(const Error& why) = print_error;

}  // namespace

void tell_errors_by(void (*tell)(const Error& why)) {
  tell_error = tell;
}

void die(ExitCode code) {
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(static_cast<int>(code));
}

void die(const Error& why) {
  tell_error(why);
  die(why.code());
}

}  // namespace lockstep::comm
