#include "trainers/report/report_error.h"

#include <cstdio>

#include <fmt/core.h>

#include "comm/launch.h"
#include "core/error.h"

namespace lockstep::trainers {
namespace {

// From the launcher: MPI_Init may not have happened yet, or may be what failed.
int rank_from_environment() {
  try {
    return comm::read_launch().rank;
  } catch (const Error&) {
    return 0;
  }
}

Error as_error(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return *ours;
  return InternalError(error.what(),
                       "an exception that Lockstep does not throw itself",
                       "please report this with the command line: it is a bug in Lockstep");
}

}  // namespace

int report_error(const std::exception& error, ErrorScope scope) {
  const Error reported = as_error(error);
  const int rank = rank_from_environment();
  const bool names_its_rank = dynamic_cast<const CommError*>(&error) != nullptr;
  if (scope == ErrorScope::kThisRank && !names_its_rank) {
    const Error named(reported.code(),
                      fmt::format("rank {}: {}", rank, reported.what()),
                      reported.why(),
                      reported.hint(),
                      reported.remedy());
    std::fputs(format_error(named).c_str(), stderr);
  } else if (scope == ErrorScope::kThisRank || rank == 0) {
    std::fputs(format_error(reported).c_str(), stderr);
  }
  return static_cast<int>(reported.code());
}

}  // namespace lockstep::trainers
