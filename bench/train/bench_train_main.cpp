#include "bench/train/program.h"

int main(int argc, char** argv) {
  return lockstep::bench::run_bench_train(argc, argv);
}
