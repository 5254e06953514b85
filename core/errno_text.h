// The operating system's message for an error number.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace lockstep {

// "No such file or directory" for ENOENT.
inline std::string errno_text(int error = errno) {
  return std::generic_category().message(error);
}

}  // namespace lockstep
