// The results as text, in the columns of nccl-tests' all_reduce_perf, and as JSON, with the names
// and types of its -J.
#pragma once

#include <cstddef>
#include <string>

#include "bench/allreduce/measure.h"

namespace lockstep::bench {

// Each function returns whole lines. Lines that nccl-tests does not print begin with #, so programs
// that read its output skip them.
std::string opening_text(const Report& report);
std::string column_text(Algorithm algorithm);
std::string row_text(const Measurement& measurement, int ranks);
std::string closing_text(const Totals& totals);

// Formats `value` in at most `width` characters, with up to two decimals.
std::string fit(double value, size_t width);

// Adds to nccl-tests' members: lockstep_version; transport and average in config; algorithm in each
// result. The times of iterations, which nccl-tests writes for -I 1 only, are always written.
std::string json_text(const Report& report);

}  // namespace lockstep::bench
