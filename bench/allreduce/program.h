// The program bench_allreduce, from arguments to exit code.
#pragma once

#include "bench/allreduce/report.h"
#include "core/communicator.h"

namespace lockstep::bench {

// Measures what report.options ask for: the table on rank 0's standard output, the JSON where it is
// wanted, and all of it in `report`. A collective call. Ends the process when the JSON cannot be
// written, before measuring where that can be known. Errors: UsageError for an algorithm that the
// transport does not have; DivergedError for wrong sums, when all is written.
void measure_all(Communicator& peers, Report& report);

// Returns the process exit code.
int run_bench_allreduce(int argc, char** argv);

}  // namespace lockstep::bench
