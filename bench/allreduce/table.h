// The results as text, in the columns of nccl-tests' all_reduce_perf.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/allreduce/measure.h"
#include "bench/allreduce/options.h"
#include "trainers/report/process.h"

namespace lockstep::bench {

// Each text is of whole lines. A program that reads nccl-tests' output skips the added ones, which
// begin with #.
std::string opening_text(const BenchOptions& options,
                         std::span<const trainers::RankPlace> places,
                         const std::string& transport,
                         const std::string& note);
std::string column_text(Algorithm algorithm);
std::string row_text(const Measurement& measurement, int ranks);
std::string closing_text(const Totals& totals);

// `value` in at most `width` characters, with up to two decimals.
std::string fit(double value, size_t width);

}  // namespace lockstep::bench
