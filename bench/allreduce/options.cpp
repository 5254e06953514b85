#include "bench/allreduce/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/core.h>

#include "bench/flags.h"
#include "core/error.h"

namespace lockstep::bench {
namespace {

constexpr std::array kDatatypes = {Named<Dtype>(Dtype::kF32, "float"),
                                   Named<Dtype>(Dtype::kF16, "half"),
                                   Named<Dtype>(Dtype::kBF16, "bfloat16")};
constexpr std::array kRankTimes = {Named<RankTime>(RankTime::kRank0, "0"),
                                   Named<RankTime>(RankTime::kMean, "1"),
                                   Named<RankTime>(RankTime::kFastest, "2"),
                                   Named<RankTime>(RankTime::kSlowest, "3")};
constexpr std::array kBlockings = {Named<Blocking>(Blocking::kNone, "0"),
                                   Named<Blocking>(Blocking::kTimedBarrier, "1"),
                                   Named<Blocking>(Blocking::kWait, "2"),
                                   Named<Blocking>(Blocking::kUntimedBarrier, "3")};

std::optional<double> unit_of(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (suffix == "K" || suffix == "k") return 0x1p10;
  if (suffix == "M" || suffix == "m") return 0x1p20;
  if (suffix == "G" || suffix == "g") return 0x1p30;
  return std::nullopt;
}

// The last name is none, which sums nothing.
constexpr std::span kSums = std::span(kAlgorithmNames).first(kAlgorithmNames.size() - 1);

std::vector<Algorithm> algorithm_list(const std::string& text) {
  std::vector<Algorithm> algorithms;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    algorithms.push_back(choice<Algorithm>("--algorithms", text.substr(begin, end - begin), kSums));
    begin = end + 1;
  }
  return algorithms;
}

void add_size(Flags& flags,
              const std::string& names,
              const std::string& initial,
              const std::string& help,
              int64_t& place) {
  flags.add(names, "SIZE", initial, help, [names, &place](const std::string& text) {
    const auto size = parse_size(text);
    if (!size)
      throw bad_value(long_name(names), text, "a size in bytes such as 4096, 4K, 25M or 1G");
    place = *size;
  });
}

void add_sizes(Flags& flags, SizeRange& sizes) {
  add_size(flags, "-b,--minbytes", "32M", "smallest size", sizes.min_bytes);
  add_size(flags, "-e,--maxbytes", "32M", "largest size", sizes.max_bytes);
  add_size(flags, "-i,--stepbytes", "1M", "from size to size", sizes.step_bytes);
  flags.add_number("-f,--stepfactor",
                   "from size to size, in place of --stepbytes; 1: no factor",
                   1,
                   1 << 20,
                   sizes.step_factor);
}

void add_measurement(Flags& flags, BenchOptions& options) {
  constexpr int64_t kMany = 1'000'000;
  flags.add_number("-n,--iters", "iterations per size", 1, kMany, options.iterations);
  flags.add_number(
      "-w,--warmup_iters", "iterations before these", 0, kMany, options.warmup_iterations);
  flags.add_number("-c,--check", "checks of the sums per size", 0, kMany, options.checks);
  flags.add_choice(
      "-a,--average",
      "0-3",
      "an iteration's time: 0 rank 0's, 1 mean of the ranks, 2 fastest, 3 slowest rank's",
      kRankTimes,
      options.rank_time);
  flags.add_choice(
      "-z,--blocking",
      "0-3",
      "between iterations: 0 or 2 nothing, 1 a barrier that is timed, 3 one that is not",
      kBlockings,
      options.blocking);
}

void add_what(Flags& flags, BenchOptions& options) {
  flags.add_choice("-d,--datatype", "TYPE", "float, half or bfloat16", kDatatypes, options.dtype);
  flags.add("--algorithms,--dist-backend",
            "LIST",
            "tree",
            names_of<Algorithm>(kSums) + "; one table each",
            [&](const std::string& text) { options.algorithms = algorithm_list(text); });
  add_connection(flags, options.connect);
  flags.add("-J,--output_file",
            "FILE",
            "",
            "write the results as JSON, in nccl-tests' form",
            [&](const std::string& text) {
              if (text.empty()) throw bad_value("--output_file", "''", "a file's name");
              options.json_path = text;
            });
}

// A flag of nccl-tests that has no counterpart here: accepted where it changes nothing.
struct ForeignOption {
  std::string_view names;    // "-t,--nthreads"
  std::string_view neutral;  // the value that changes nothing here; empty: all of them
  std::string_view why;      // what stands against the others
  std::string_view instead;
};

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

void check_foreign_option(const ForeignOption& option, const std::string& value) {
  if (option.neutral.empty() || option.neutral == value) return;
  throw UsageError(
      fmt::format(
          "bench_allreduce has no {} {}", option.names.substr(option.names.find(',') + 1), value),
      std::string(option.why),
      std::string(option.instead));
}

void add_foreign(Flags& flags) {
  for (const ForeignOption& option : kForeignOptions) {
    flags.add_hidden(std::string(option.names),
                     [&option](const std::string& text) { check_foreign_option(option, text); });
  }
}

void check_together(const SizeRange& sizes) {
  if (sizes.min_bytes > sizes.max_bytes) {
    throw UsageError(fmt::format("no size from {} to {} bytes", sizes.min_bytes, sizes.max_bytes),
                     "--minbytes is above --maxbytes; each is 32M unless given",
                     fmt::format("-b {} -e {}", sizes.min_bytes, sizes.min_bytes));
  }
  if (sizes.min_bytes < sizes.max_bytes && sizes.step_bytes == 0 && sizes.step_factor == 1) {
    throw UsageError("--stepbytes 0 never reaches the largest size",
                     "the sizes go from --minbytes to --maxbytes",
                     "--stepfactor 2");
  }
}

}  // namespace

std::optional<int64_t> parse_size(std::string_view text) {
  double number = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number, std::chars_format::fixed);
  const auto unit = unit_of({stop, static_cast<size_t>(end - stop)});
  if (error != std::errc{} || !unit) return std::nullopt;
  const double bytes = number * *unit;
  if (!(bytes >= 0 && bytes < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::vector<int64_t> sizes_of(const SizeRange& range) {
  constexpr int64_t kLimit = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> sizes;
  for (int64_t size = range.min_bytes; size <= range.max_bytes;) {
    sizes.push_back(size);
    const bool multiply = range.step_factor > 1;
    if (multiply && size > kLimit / range.step_factor) break;
    if (!multiply && size > kLimit - range.step_bytes) break;
    const int64_t next = multiply ? size * range.step_factor : size + range.step_bytes;
    if (next == size) break;
    size = next;
  }
  return sizes;
}

BenchOptions read_options(const std::vector<std::string>& arguments) {
  BenchOptions options;
  Flags flags("bench_allreduce",
              "Time, bandwidth and correctness of a sum over ranks, in nccl-tests' terms.",
              "the flags of nccl-tests' all_reduce_perf and a few more");
  add_sizes(flags, options.sizes);
  add_measurement(flags, options);
  add_what(flags, options);
  add_foreign(flags);
  options.help = flags.parse(arguments);
  if (!options.help.empty()) return options;
  check_together(options.sizes);
  return options;
}

std::string_view allreduce_advice(Remedy remedy) {
  if (remedy == Remedy::kSmallerBatch) return "-e sets the largest size";
  if (remedy == Remedy::kAlgorithm) return "--algorithms names it";
  return connection_advice(remedy);
}

std::string_view datatype_name(Dtype dtype) {
  const auto found = std::ranges::find(kDatatypes, dtype, &Named<Dtype>::first);
  return found == kDatatypes.end() ? "?" : found->second;
}

}  // namespace lockstep::bench
