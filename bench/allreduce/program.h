// The program bench_allreduce, from arguments to exit code.
#pragma once

namespace lockstep::bench {

// Prints on rank 0. Returns the process exit code; wrong sums end with ExitCode::kDiverged.
int run_bench_allreduce(int argc, char** argv);

}  // namespace lockstep::bench
