// bench_kernels: every kernel on the CPU and, where there is a CUDA device, on that.
#include <cstdio>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/kernels/cuda_bench.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  if (const std::string why = lockstep::bench::register_cuda_benches(); !why.empty())
    fmt::print(stderr, "no CUDA device: {}. The CPU's cases alone.\n", why);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
