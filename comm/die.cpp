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

ExitCode failure_code(int64_t number) {
  constexpr ExitCode kFailures[] = {ExitCode::kInternal,
                                    ExitCode::kUsage,
                                    ExitCode::kData,
                                    ExitCode::kCheckpoint,
                                    ExitCode::kEnvironment,
                                    ExitCode::kDiverged,
                                    ExitCode::kStopped,
                                    ExitCode::kPeerLost};
  for (const ExitCode code : kFailures) {
    if (static_cast<int64_t>(code) == number) return code;
  }
  return ExitCode::kPeerLost;
}

void set_error_report(void (*tell)(const Error& why)) {
  tell_error = tell;
}

void die(ExitCode code) {
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(static_cast<int>(failure_code(static_cast<int64_t>(code))));
}

void die(const Error& why) {
  tell_error(why);
  die(why.code());
}

}  // namespace lockstep::comm
