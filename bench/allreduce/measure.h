// Measures the time of an all-reduce and checks its sums, for one size and algorithm or for all of
// them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/allreduce/options.h"
#include "core/communicator.h"
#include "core/tensor.h"
#include "trainers/config/rank_machine.h"

namespace lockstep::bench {

// Bytes that pass through a rank's link for each byte that is all-reduced.
constexpr double bus_factor(int ranks) {
  return 2.0 * (ranks - 1) / ranks;
}

// 1e9 bytes per second; 0 for no time at all.
constexpr double gigabytes_per_second(int64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

struct Side {
  static constexpr int64_t kUnchecked = -1;

  std::vector<double> seconds;  // one per iteration; over ranks as -a says
  int64_t wrong = kUnchecked;   // elements, of all ranks and checks together

  double mean() const;
};

struct Measurement {
  Algorithm algorithm = Algorithm::kTree;
  Dtype dtype = Dtype::kF32;
  int64_t count = 0;
  Side out_of_place = {};
  Side in_place = {};

  int64_t bytes() const { return count * static_cast<int64_t>(size_of(dtype)); }
};

struct Totals {
  int64_t failed = 0;        // sides with wrong elements
  double bus_bandwidth = 0;  // GB/s, mean over all sides
};

Totals totals_of(const std::vector<Measurement>& measurements, int ranks);

// Reduces each iteration's times to one, as `rank_time` says. `by_rank` holds the iterations of
// rank 0, then those of rank 1, and so on.
std::vector<double> over_ranks(const std::vector<double>& by_rank,
                               size_t iterations,
                               RankTime rank_time);

// In place, the values lie in memory from Communicator::allocate() and stay there. Out of place,
// they are first copied there from ordinary memory; the engine has no other way to sum them. The
// communicator must outlive this. All ranks make the same calls.
class Meter {
 public:
  Meter(Communicator& peers, const BenchOptions& options);

  // Errors: UsageError when the transport does not have the algorithm.
  void probe(Algorithm algorithm);
  // The size is rounded down to whole elements. Requires: not above the options' largest.
  Measurement measure(Algorithm algorithm, int64_t bytes);

 private:
  struct Case;

  Side measure_side(const Case& test);
  void run(const Case& test);
  std::vector<double> time(const Case& test);
  int64_t check(const Case& test);

  Communicator& peers_;
  const BenchOptions options_;
  Tensor send_;
  Tensor receive_;
  uint64_t seed_ = 0;
};

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

// Measures what report.options ask for. Prints the table on rank 0's standard output, writes the
// JSON file where one is wanted, and keeps all of it in `report`. A collective call. Ends the
// process when the JSON cannot be written; before measuring, where that can be known by then.
// Errors: UsageError for an algorithm that the transport does not have; DivergedError for wrong
// sums, after everything is written.
void measure_all(Communicator& peers, Report& report);

}  // namespace lockstep::bench
