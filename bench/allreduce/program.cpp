#include "bench/allreduce/program.h"

#include <cstdio>
#include <filesystem>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "bench/allreduce/measure.h"
#include "bench/allreduce/options.h"
#include "bench/allreduce/report.h"
#include "bench/allreduce/table.h"
#include "bench/printer.h"
#include "bench/ranks.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "trainers/report/errors.h"
#include "trainers/report/process.h"

namespace lockstep::bench {
namespace {

// Before hours are spent on results that cannot be kept.
void check_json_path(const std::filesystem::path& path) {
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
  trainers::on_all_ranks(peers, [&] {
    if (peers.rank() == 0 && !options.json_path.empty()) check_json_path(options.json_path);
  });
  report.places = trainers::gather_places(peers, trainers::this_place());
  Meter meter(peers, options);
  for (const Algorithm algorithm : options.algorithms) meter.probe(algorithm);

  const Printer printer(peers.rank() == 0 ? stdout : nullptr);
  printer.print(opening_text(options, report.places, report.transport, report.note));
  for (const Algorithm algorithm : options.algorithms) {
    const auto table = measure_table(meter, options, algorithm, peers.size(), printer);
    report.measurements.insert(report.measurements.end(), table.begin(), table.end());
  }
  printer.print("# Collective test concluded: bench_allreduce\n");
  report.end = std::chrono::system_clock::now();
  trainers::on_all_ranks(peers, [&] {
    if (peers.rank() != 0 || options.json_path.empty()) return;
    write_file_atomically(options.json_path, json_text(report));
  });
  refuse_wrong_sums(report);
}

int run_bench_allreduce(int argc, char** argv) {
  Report report{.arguments = {argv, argv + argc}, .start = std::chrono::system_clock::now()};
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  set_remedy_text(allreduce_advice);
  return run_on_ranks(
      arguments,
      [&] {
        report.options = read_options(arguments);
        return RanksRequest{.connect = report.options.connect, .help = report.options.help};
      },
      [&](const comm::Launch&, const comm::Connection& connection) {
        report.transport = connection.transport;
        report.note = connection.note;
        measure_all(*connection.ranks, report);
      });
}

}  // namespace lockstep::bench
