// The command line of bench_allreduce: nccl-tests' flags and some of Lockstep's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/connect.h"
#include "core/communicator.h"
#include "core/dtype.h"
#include "core/error.h"

namespace lockstep::bench {

// Parses "32", "4K", "1.5m" or "1G"; suffixes are powers of 1024, in either case. Returns nothing
// for other text, for negative numbers and for values beyond int64_t.
std::optional<int64_t> parse_size(std::string_view text);

struct SizeRange {
  int64_t min_bytes = int64_t{32} << 20;
  int64_t max_bytes = int64_t{32} << 20;
  int64_t step_bytes = int64_t{1} << 20;
  int64_t step_factor = 1;  // above 1 it takes the place of step_bytes
};

// Returns the sizes from min_bytes on, none above max_bytes. Zero times a factor stays zero and is
// listed once.
std::vector<int64_t> sizes_of(const SizeRange& range);

// -a: which rank's time counts as that of an iteration.
enum class RankTime : uint8_t { kRank0, kMean, kFastest, kSlowest };

// -z: what separates two iterations.
enum class Blocking : uint8_t {
  kNone,           // the next starts as soon as this rank has its sum
  kTimedBarrier,   // a barrier, part of the time
  kWait,           // as kNone: a call returns when the sum is there
  kUntimedBarrier  // a barrier, not part of the time; the values are written again before it
};

struct BenchOptions {
  SizeRange sizes;
  Dtype dtype = Dtype::kF32;
  int64_t iterations = 20;
  int64_t warmup_iterations = 1;
  int64_t checks = 1;
  RankTime rank_time = RankTime::kSlowest;
  Blocking blocking = Blocking::kUntimedBarrier;
  std::vector<Algorithm> algorithms = {Algorithm::kTree};
  comm::ConnectOptions connect;
  std::string json_path;  // empty: none
  std::string help;       // not empty: to be printed instead of measuring
};

// `arguments`: without the program's name. Errors: UsageError.
BenchOptions read_options(const std::vector<std::string>& arguments);

// For set_remedy_text().
std::string_view allreduce_advice(Remedy remedy);

std::string_view datatype_name(Dtype dtype);  // as -d takes it: "float"

}  // namespace lockstep::bench
