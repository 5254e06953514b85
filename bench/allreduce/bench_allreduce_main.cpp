#include "bench/allreduce/program.h"

int main(int argc, char** argv) {
  return lockstep::bench::run_bench_allreduce(argc, argv);
}
