#include "bench/allreduce/measure.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <span>

#include <fmt/core.h>
#include <unistd.h>

#include "bench/allreduce/report.h"
#include "bench/allreduce/values.h"
#include "bench/ranks.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "trainers/report/errors.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

bool keeps_tree_order(Algorithm algorithm) {
  return algorithm == Algorithm::kTree || algorithm == Algorithm::kStar;
}

double combine(std::span<const double> times, RankTime rank_time) {
  switch (rank_time) {
    case RankTime::kRank0:
      return times[0];
    case RankTime::kMean:
      return std::reduce(times.begin(), times.end()) / static_cast<double>(times.size());
    case RankTime::kFastest:
      return std::ranges::min(times);
    case RankTime::kSlowest:
      break;
  }
  return std::ranges::max(times);
}

}  // namespace

double Side::mean() const {
  return std::reduce(seconds.begin(), seconds.end()) / static_cast<double>(seconds.size());
}

Totals totals_of(const std::vector<Measurement>& measurements, int ranks) {
  Totals totals;
  double sum = 0;
  for (const Measurement& measurement : measurements) {
    for (const Side& side : {measurement.out_of_place, measurement.in_place}) {
      totals.failed += side.wrong > 0 ? 1 : 0;
      sum += gigabytes_per_second(measurement.bytes(), side.mean()) * bus_factor(ranks);
    }
  }
  if (!measurements.empty()) {
    totals.bus_bandwidth = sum / (2.0 * static_cast<double>(measurements.size()));
  }
  return totals;
}

std::vector<double> over_ranks(const std::vector<double>& by_rank,
                               size_t iterations,
                               RankTime rank_time) {
  std::vector<double> combined(iterations);
  std::vector<double> times(by_rank.size() / iterations);
  for (size_t i = 0; i < iterations; ++i) {
    for (size_t rank = 0; rank < times.size(); ++rank) times[rank] = by_rank[rank * iterations + i];
    combined[i] = combine(times, rank_time);
  }
  return combined;
}

struct Meter::Case {
  Algorithm algorithm = Algorithm::kTree;
  bool in_place = true;
  Tensor send;
  Tensor receive;
};

Meter::Meter(Communicator& peers, const BenchOptions& options) : peers_(peers), options_(options) {
  const int64_t count = options.sizes.max_bytes / static_cast<int64_t>(size_of(options.dtype));
  send_ = Tensor::empty({count}, options.dtype);
  receive_ = peers.allocate({count}, options.dtype);
}

void Meter::probe(Algorithm algorithm) {
  peers_.start_all_reduce({receive_.slice(0, 0), algorithm, "bench_allreduce"})->wait();
}

Measurement Meter::measure(Algorithm algorithm, int64_t bytes) {
  Measurement result{.algorithm = algorithm, .dtype = options_.dtype};
  result.count = bytes / static_cast<int64_t>(size_of(options_.dtype));
  Case test{algorithm, false, send_.slice(0, result.count), receive_.slice(0, result.count)};
  result.out_of_place = measure_side(test);
  test.in_place = true;
  result.in_place = measure_side(test);
  return result;
}

Side Meter::measure_side(const Case& test) {
  Tensor send = test.send;
  Tensor receive = test.receive;
  fill_ones(send);
  fill_ones(receive);
  for (int64_t i = 0; i < options_.warmup_iterations; ++i) run(test);
  Side side{.seconds = time(test)};
  if (options_.checks > 0) side.wrong = check(test);
  return side;
}

void Meter::run(const Case& test) {
  Tensor receive = test.receive;
  if (!test.in_place && receive.nbytes() > 0) {
    std::memcpy(receive.bytes(), test.send.bytes(), receive.nbytes());
  }
  peers_.start_all_reduce({receive, test.algorithm, "bench_allreduce"})->wait();
}

std::vector<double> Meter::time(const Case& test) {
  const auto iterations = static_cast<size_t>(options_.iterations);
  std::vector<double> mine(iterations);
  peers_.barrier();
  for (double& seconds : mine) {
    if (options_.blocking == Blocking::kUntimedBarrier) {
      Tensor written = test.in_place ? test.receive : test.send;
      fill_ones(written);  // a gradient is in the cache of the core that computed it
      peers_.barrier();
    }
    const auto start = Clock::now();
    run(test);
    if (options_.blocking == Blocking::kTimedBarrier) peers_.barrier();
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
    // Where ranks share cores, a rank that writes its next values would keep others from seeing
    // that they are done.
    if (options_.blocking == Blocking::kUntimedBarrier) peers_.barrier();
  }
  std::vector<double> all(iterations * static_cast<size_t>(peers_.size()));
  peers_.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  return over_ranks(all, iterations, options_.rank_time);
}

int64_t Meter::check(const Case& test) {
  int64_t wrong = 0;
  Tensor input = test.in_place ? test.receive : test.send;
  for (int64_t i = 0; i < options_.checks; ++i) {
    for (const Pattern pattern : {Pattern::kExact, Pattern::kCanceling}) {
      if (pattern == Pattern::kCanceling && !keeps_tree_order(test.algorithm)) continue;
      const Sample sample{pattern, ++seed_, peers_.size()};
      fill_values(input, sample, peers_.rank());
      run(test);
      wrong += count_wrong(test.receive, sample);
    }
  }
  peers_.all_reduce_sum(std::span(&wrong, 1));
  return wrong;
}

namespace {

// Fails before hours are spent on results that cannot be kept.
void check_json_path(const std::filesystem::path& path) {
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path)) {
    throw EnvironmentError(fmt::format("cannot write {}", path.string()),
                           "it is a folder, a device or a pipe",
                           "-J and the name of a file");
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (access(folder.c_str(), W_OK | X_OK) == 0) return;
  throw EnvironmentError(fmt::format("cannot write {}", path.string()),
                         fmt::format("the folder {} is missing or closed", folder.string()),
                         fmt::format("mkdir -p {}", folder.string()));
}

std::vector<Measurement> measure_table(Meter& meter,
                                       const BenchOptions& options,
                                       Algorithm algorithm,
                                       int ranks,
                                       const Printer& printer) {
  std::vector<Measurement> table;
  printer.print(column_text(algorithm));
  for (const int64_t bytes : sizes_of(options.sizes)) {
    table.push_back(meter.measure(algorithm, bytes));
    printer.print(row_text(table.back(), ranks));
  }
  printer.print(closing_text(totals_of(table, ranks)));
  return table;
}

void refuse_wrong_sums(const Report& report) {
  const auto ranks = static_cast<int>(report.places.size());
  const int64_t failed = totals_of(report.measurements, ranks).failed;
  if (failed == 0) return;
  throw DivergedError(
      fmt::format("{} of {} measurements gave wrong sums", failed, 2 * report.measurements.size()),
      "the column #wrong counts elements that differ from the known sum",
      "run it again with another --transport or --algorithms, and report both");
}

}  // namespace

void measure_all(Communicator& peers, Report& report) {
  const BenchOptions& options = report.options;
  trainers::run_or_end_all_ranks(peers, [&] {
    if (peers.rank() == 0 && !options.json_path.empty()) check_json_path(options.json_path);
  });
  report.places = trainers::gather_places(peers, trainers::this_place());
  Meter meter(peers, options);
  for (const Algorithm algorithm : options.algorithms) meter.probe(algorithm);

  const Printer printer(peers.rank() == 0 ? stdout : nullptr);
  printer.print(opening_text(report));
  for (const Algorithm algorithm : options.algorithms) {
    const auto table = measure_table(meter, options, algorithm, peers.size(), printer);
    report.measurements.insert(report.measurements.end(), table.begin(), table.end());
  }
  printer.print("# Collective test concluded: bench_allreduce\n");
  report.end = std::chrono::system_clock::now();
  trainers::run_or_end_all_ranks(peers, [&] {
    if (peers.rank() != 0 || options.json_path.empty()) return;
    write_file_atomically(options.json_path, json_text(report));
  });
  refuse_wrong_sums(report);
}

}  // namespace lockstep::bench
