#include "bench/allreduce/options.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "bench/allreduce/foreign_options.h"
#include "bench/flags.h"
#include "core/error.h"

namespace lockstep::bench {
namespace {

using trainers::Named;

constexpr std::array kDatatypes = {Named<Dtype>(Dtype::kF32, "float"),
                                   Named<Dtype>(Dtype::kF16, "half"),
                                   Named<Dtype>(Dtype::kBF16, "bfloat16")};
constexpr std::array kAlgorithms = {
    Algorithm::kRing, Algorithm::kTree, Algorithm::kStar, Algorithm::kLibrary};

int64_t size_value(std::string_view flag, const std::string& text) {
  if (const auto size = parse_size(text)) return *size;
  throw bad_value(flag, text, "a size in bytes such as 4096, 4K, 25M or 1G");
}

std::vector<Algorithm> algorithm_list(const std::string& text) {
  std::vector<Named<Algorithm>> choices;
  choices.reserve(kAlgorithms.size());
  for (const Algorithm each : kAlgorithms) choices.emplace_back(each, trainers::name_of(each));
  std::vector<Algorithm> algorithms;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    algorithms.push_back(
        choice<Algorithm>("--algorithms", text.substr(begin, end - begin), choices));
    begin = end + 1;
  }
  return algorithms;
}

void add_sizes(Flags& flags, SizeRange& sizes) {
  flags.add("-b,--minbytes", "SIZE", "32M", "smallest size", [&](const std::string& text) {
    sizes.min_bytes = size_value("--minbytes", text);
  });
  flags.add("-e,--maxbytes", "SIZE", "32M", "largest size", [&](const std::string& text) {
    sizes.max_bytes = size_value("--maxbytes", text);
  });
  flags.add("-i,--stepbytes", "SIZE", "1M", "from size to size", [&](const std::string& text) {
    sizes.step_bytes = size_value("--stepbytes", text);
  });
  flags.add("-f,--stepfactor",
            "N",
            "",
            "from size to size, in place of --stepbytes",
            [&](const std::string& text) {
              sizes.step_factor = whole_number("--stepfactor", text, 1, 1 << 20);
            });
}

void add_measurement(Flags& flags, BenchOptions& options) {
  constexpr int64_t kMany = 1'000'000;
  flags.add("-n,--iters", "N", "20", "iterations a size", [&](const std::string& text) {
    options.iterations = whole_number("--iters", text, 1, kMany);
  });
  flags.add("-w,--warmup_iters", "N", "1", "iterations before these", [&](const std::string& text) {
    options.warmup_iterations = whole_number("--warmup_iters", text, 0, kMany);
  });
  flags.add("-c,--check", "N", "1", "checks of the sums a size", [&](const std::string& text) {
    options.checks = whole_number("--check", text, 0, kMany);
  });
  flags.add("-a,--average",
            "0-3",
            "3",
            "an iteration's time: 0 rank 0's, 1 mean of the ranks, 2 fastest, 3 slowest rank's",
            [&](const std::string& text) {
              options.rank_time = static_cast<RankTime>(whole_number("--average", text, 0, 3));
            });
  flags.add("-z,--blocking",
            "0-3",
            "3",
            "between iterations: 0 or 2 nothing, 1 a barrier that is timed, 3 one that is not",
            [&](const std::string& text) {
              options.blocking = static_cast<Blocking>(whole_number("--blocking", text, 0, 3));
            });
}

void add_what(Flags& flags, BenchOptions& options) {
  flags.add(
      "-d,--datatype", "TYPE", "float", "float, half or bfloat16", [&](const std::string& text) {
        options.dtype = choice<Dtype>("--datatype", text, kDatatypes);
      });
  flags.add("--algorithms,--dist-backend",
            "LIST",
            "tree",
            "ring, tree, star, mpi; a table each",
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

void add_foreign(Flags& flags) {
  for (const ForeignOption& option : foreign_options()) {
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
    throw UsageError("--stepbytes 0 leads nowhere",
                     "the sizes go from --minbytes to --maxbytes",
                     "--stepfactor 2");
  }
}

}  // namespace

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
