// The program bench_train, from arguments to exit code.
#include <cstdio>
#include <string>
#include <vector>

#include "bench/ranks.h"
#include "bench/train/against_cpu.h"
#include "bench/train/options.h"
#include "bench/train/report.h"
#include "bench/train/synthetic_training.h"
#include "core/error.h"
#include "core/standard_streams.h"

namespace lockstep::bench {
namespace {

int run(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  SyntheticOptions options;
  set_remedy_text(synthetic_advice);
  return run_on_ranks(
      arguments,
      [&] {
        options = read_synthetic_options(arguments);
        return RanksRequest{.connect = options.connect, .help = options.help};
      },
      [&](const comm::Launch& launch, const comm::Connection& connection) {
        if (options.against_cpu) {
          std::fputs(compare_step(options, launch, *connection.ranks).c_str(), stdout);
          return;
        }
        const SyntheticReport report = measure_training(options, launch, connection);
        if (options.json && connection.ranks->rank() == 0) {
          std::fputs(json_text(report).c_str(), stdout);
        }
        connection.ranks->barrier();
      });
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::open_standard_streams();
  return lockstep::bench::run(argc, argv);
}
