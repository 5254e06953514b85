// The program bench_train, from arguments to exit code.
#pragma once

#include "bench/train/options.h"
#include "bench/train/report.h"
#include "comm/connect.h"

namespace lockstep::bench {

// Measures what `options` ask for and says so: on standard output, or on standard error where
// options.json wants the other for itself. Rank 0 prints. A collective call. Errors: UsageError for
// a network that there is not, and for shards that do not fit; DivergedError for a loss that is not
// finite.
SyntheticReport measure_training(const SyntheticOptions& options,
                                 const comm::Launch& launch,
                                 const comm::Connection& connection);

// Returns the process exit code.
int run_bench_train(int argc, char** argv);

}  // namespace lockstep::bench
