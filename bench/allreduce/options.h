// bench_allreduce's command line: nccl-tests' flags, and what only Lockstep has.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/allreduce/sizes.h"
#include "comm/connect.h"
#include "core/communicator.h"
#include "core/dtype.h"
#include "core/error.h"

namespace lockstep::bench {

// -a: which rank's time counts as that of an iteration.
enum class RankTime : uint8_t { kRank0, kMean, kFastest, kSlowest };

// -z: what stands between iterations.
enum class Blocking : uint8_t {
  kNone,           // the next starts as soon as this rank has its sum
  kTimedBarrier,   // a barrier, part of the time
  kWait,           // as kNone: a call returns when the sum is there
  kUntimedBarrier  // a barrier, not part of the time; the values are written anew before it
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
