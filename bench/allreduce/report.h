// The results as JSON, with the names and types of nccl-tests' -J.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench/allreduce/measure.h"
#include "bench/allreduce/options.h"
#include "bench/allreduce/table.h"

namespace lockstep::bench {

struct Report {
  std::vector<std::string> arguments = {};  // the program's name first
  BenchOptions options = {};
  std::vector<trainers::RankPlace> places = {};
  std::string transport = {};
  std::string note = {};  // why it is this transport; may be empty
  std::vector<Measurement> measurements = {};
  std::chrono::system_clock::time_point start = {};
  std::chrono::system_clock::time_point end = {};
};

// Members beyond nccl-tests': lockstep_version, transport and average in config, algorithm in each
// result. The times of iterations, there for -I 1 only, are always written.
std::string json_text(const Report& report);

}  // namespace lockstep::bench
