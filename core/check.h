// LS_CHECK: invariants that are checked in every build.
#pragma once

#include <string>

#include <fmt/core.h>

namespace lockstep::detail {

// Throws InternalError with the condition, the place and `message`.
[[noreturn]] void check_failed(const char* condition,
                               const char* file,
                               int line,
                               const std::string& message);

}  // namespace lockstep::detail

// LS_CHECK(condition, format, arguments...): throws InternalError unless the condition holds.
#define LS_CHECK(condition, ...)                                                                  \
  do {                                                                                            \
    if (!(condition)) [[unlikely]]                                                                \
      ::lockstep::detail::check_failed(#condition, __FILE__, __LINE__, fmt::format(__VA_ARGS__)); \
  } while (false)
