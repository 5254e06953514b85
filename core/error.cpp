#include "core/error.h"

#include <utility>

#include <fmt/core.h>

#include "core/check.h"

namespace lockstep {

Error::Error(ExitCode code, const std::string& what, std::string why, std::string hint)
    : std::runtime_error(what), code_(code), why_(std::move(why)), hint_(std::move(hint)) {}

std::string format_error(const Error& error) {
  std::string text = fmt::format("lockstep: error: {}\n", error.what());
  if (!error.why().empty()) text += fmt::format("  why: {}\n", error.why());
  if (!error.hint().empty()) text += fmt::format("  try: {}\n", error.hint());
  return text;
}

namespace detail {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw InternalError(message,
                      fmt::format("the check `{}` failed at {}:{}", condition, file, line),
                      "please report this with the command line: it is a bug in Lockstep");
}

}  // namespace detail
}  // namespace lockstep
