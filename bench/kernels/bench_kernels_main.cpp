// usage: bench_kernels [--rehearsal] [--benchmark_...]
// Times every kernel on the CPU and, where there is one, on a CUDA device. --rehearsal runs each
// once on very little data, to see whether they work, not how fast they are.
#include <cstdio>
#include <string_view>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/kernels/op_bench.h"
#include "core/error.h"
#include "core/standard_streams.h"
#include "core/words.h"

int main(int argc, char** argv) {
  lockstep::open_standard_streams();
  const bool rehearsal = argc > 1 && std::string_view(argv[1]) == "--rehearsal";
  if (rehearsal) {
    argv[1] = argv[0];
    ++argv;
    --argc;
  }
  benchmark::Initialize(&argc, argv);
  if (argc > 1) {  // which benchmark::ReportUnrecognizedArguments() would print raw
    const lockstep::UsageError error(
        fmt::format("unknown argument {}", lockstep::printable(argv[1])),
        "",
        "bench_kernels --help");
    fmt::print(stderr, "{}", lockstep::format_error(error));
    return 2;
  }
  if (const std::string why = lockstep::bench::register_benches(rehearsal); !why.empty())
    fmt::print(stderr, "no CUDA device: {}. The CPU's cases alone.\n", why);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
