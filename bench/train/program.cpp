#include "bench/train/program.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <sys/resource.h>

#include "bench/printer.h"
#include "bench/ranks.h"
#include "bench/train/synthetic_training.h"
#include "core/error.h"
#include "trainers/config/rank_machine.h"
#include "trainers/config/resolved_run.h"
#include "trainers/report/process.h"

namespace lockstep::bench {
namespace {

std::vector<double> peak_rss_mib(Communicator& ranks) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double mine = static_cast<double>(used.ru_maxrss) / 1024;
  std::vector<double> all(static_cast<size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

void warm_up(SyntheticTraining& training, SyntheticReport& report) {
  for (int64_t i = 0; i < report.options.warmup_batches; ++i) {
    training.step();
    if (i == 0) report.first_step_s = trainers::seconds_since_process_start();
  }
  training.exchange_totals();
}

void run_iteration(SyntheticTraining& training, SyntheticReport& report) {
  double sum_s = 0;
  for (int64_t i = 0; i < report.options.batches_per_iteration; ++i) {
    report.step_s.push_back(training.step());
    sum_s += report.step_s.back();
    if (report.first_step_s == 0) report.first_step_s = trainers::seconds_since_process_start();
  }
  report.iteration_s.push_back(sum_s);
}

void check_losses(std::span<const float> losses) {
  for (const float loss : losses) {
    if (std::isfinite(loss)) continue;
    throw DivergedError("the loss is not finite",
                        "steps on numbers that are not finite measure something else",
                        "fewer steps, or --num-warmup-batches 0");
  }
}

}  // namespace

SyntheticReport measure_training(const SyntheticOptions& options,
                                 const comm::Launch& launch,
                                 const comm::Connection& connection) {
  Communicator& ranks = *connection.ranks;
  const trainers::RunRequest request = run_request(options);
  const int64_t threads = trainers::agreed_threads(request.threads, launch, ranks);
  constexpr int64_t kAnyImages = std::numeric_limits<int64_t>::max();
  const trainers::ResolvedRun run{
      .request = request,
      .batch = trainers::divide_batch(request, ranks.size(), threads, kAnyImages),
      .threads = threads,
      .transport = std::string(connection.transport)};
  SyntheticReport report{.options = options, .run = run, .network = model_options(options)};
  Stream stream(Device::kCpu, static_cast<int>(threads), trainers::may_spin(launch, threads));
  Mt19937 rng(request.seeds.weights);
  const auto model = trainers::make_model(report.network, nn::Init{rng});
  report.parameters = model->parameter_count();

  std::FILE* const out = options.json ? stderr : stdout;
  const Printer printer(ranks.rank() == 0 ? out : nullptr);
  printer.print(opening_text(report) + "Running warmup...\n");
  SyntheticTraining training(run, report.network, ranks, stream, *model);
  warm_up(training, report);
  printer.print("Running benchmark...\n");
  for (int64_t i = 0; i < options.iterations; ++i) {
    run_iteration(training, report);
    printer.print(iteration_text(report, static_cast<size_t>(i)));
  }
  const trainers::WindowTotals totals = training.exchange_totals();
  check_losses(totals.losses);
  report.loss = totals.losses.back();
  report.seconds = totals.ranks;
  report.peak_rss_mib = peak_rss_mib(ranks);
  printer.print(closing_text(report));
  return report;
}

int run_bench_train(int argc, char** argv) {
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
        const SyntheticReport report = measure_training(options, launch, connection);
        if (options.json && connection.ranks->rank() == 0) {
          std::fputs(json_text(report).c_str(), stdout);
        }
        connection.ranks->barrier();
      });
}

}  // namespace lockstep::bench
