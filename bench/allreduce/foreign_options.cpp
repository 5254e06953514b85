#include "bench/allreduce/foreign_options.h"

#include <array>

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::bench {
namespace {

constexpr std::array kForeignOptions = std::to_array<ForeignOption>({
    {"-t,--nthreads", "1", "a rank is a process of one thread", "mpirun -np RANKS"},
    {"-g,--ngpus", "1", "a rank is a process on the CPU", "mpirun -np RANKS"},
    {"-m,--agg_iters", "1", "sums are not grouped", "leave it out"},
    {"-N,--run_cycles", "1", "the sizes are gone through once", "a larger --iters"},
    {"-p,--parallel_init", "", "", ""},
    {"-o,--op", "sum", "gradients are summed", "leave it out"},
    {"-r,--root", "", "", ""},
    {"-y,--stream_null", "", "", ""},
    {"-T,--timeout", "0", "each wait has its own deadline", "--stall-abort SECONDS"},
    {"-G,--cudagraph", "0", "there is no CUDA graph on a CPU", "leave it out"},
    {"-C,--report_cputime", "0", "a call returns when the sum is there", "leave it out"},
    {"-S,--report_timestamps",
     "0",
     "lines bear no time of day",
     "-J FILE, which has start and end"},
    {"-R,--local_register", "", "", ""},
    {"-x,--cta_policy", "", "", ""},
    {"-D,--device_implementation", "0", "there is no device code", "--algorithms LIST"},
    {"-V,--device_cta_count", "", "", ""},
    {"-M,--memory", "0", "memory use is not reported", "leave it out"},
    {"-u,--unalign", "0", "buffers are aligned as the engine's are", "leave it out"},
    {"-I,--per_iter_timing", "0", "the table has no such columns", "-J FILE, which has every time"},
    {"-K,--per_iter_skip", "0", "no iteration is left out", "a larger --warmup_iters"},
});

}  // namespace

std::span<const ForeignOption> foreign_options() {
  return kForeignOptions;
}

void check_foreign_option(const ForeignOption& option, std::string_view value) {
  if (option.neutral.empty() || option.neutral == value) return;
  throw UsageError(
      fmt::format(
          "bench_allreduce has no {} {}", option.names.substr(option.names.find(',') + 1), value),
      std::string(option.why),
      std::string(option.instead));
}

}  // namespace lockstep::bench
