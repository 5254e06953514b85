// The program bench_allreduce, from arguments to exit code.
#include <chrono>
#include <string>
#include <vector>

#include "bench/allreduce/measure.h"
#include "bench/allreduce/options.h"
#include "bench/ranks.h"
#include "core/error.h"
#include "core/standard_streams.h"

namespace lockstep::bench {
namespace {

int run(int argc, char** argv) {
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

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::open_standard_streams();
  return lockstep::bench::run(argc, argv);
}
