// Parses a command line like a trainer, with a given environment.
#pragma once

#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "core/error.h"
#include "trainers/options/command_line.h"

namespace lockstep::testing {

using namespace trainers;  // what these helpers are about

using Variables = std::map<std::string, std::string>;

// `line` is split at spaces.
inline Options options_of(const std::string& line,
                          const Variables& variables = {},
                          Program program = Program::kTrainConvnet) {
  std::istringstream stream(line);
  std::vector<std::string> arguments;
  for (std::string argument; stream >> argument;) arguments.push_back(argument);
  return read_options(program, arguments, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

// The UsageError that `call` throws, if any.
template <class Call>
std::optional<UsageError> usage_error(Call&& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error;
  }
  return std::nullopt;
}

// what | why | hint, or "accepted".
inline std::string refusal(const std::string& line, const Variables& variables = {}) {
  const auto error = usage_error([&] { options_of(line, variables); });
  if (!error) return "accepted";
  return fmt::format("{} | {} | {}", error->what(), error->why(), error->hint());
}

}  // namespace lockstep::testing
