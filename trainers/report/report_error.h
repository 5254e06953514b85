// The last thing a failed program says.
#pragma once

#include <cstdint>
#include <exception>

namespace lockstep::trainers {

enum class ErrorScope : uint8_t {
  kEveryRank,  // all ranks fail alike (usage, missing data): rank 0 prints for them
  kThisRank,   // this rank prints, with its number, which CommErrors hold already
};

// Prints an Error's three lines to stderr; returns the process exit code. Any other exception is
// reported as a bug. May be called before MPI_Init.
int report_error(const std::exception& error, ErrorScope scope = ErrorScope::kEveryRank);

}  // namespace lockstep::trainers
