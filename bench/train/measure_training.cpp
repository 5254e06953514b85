#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/resource.h>

#include "bench/ranks.h"
#include "bench/train/step_clock.h"
#include "bench/train/synthetic_training.h"
#include "comm/gather.h"
#include "core/atomic_file.h"
#include "core/cuda/device.h"
#include "core/error.h"
#include "data/synthetic.h"
#include "trainers/cli/gradient_route.h"
#include "trainers/config/rank_machine.h"
#include "trainers/model/models.h"
#include "trainers/planner/run_engines.h"
#include "trainers/report/errors.h"
#include "trainers/report/process.h"

namespace lockstep::bench {
namespace {

// A step to measure, with the parts that run it.
struct Setting {
  SyntheticReport report = {};
  trainers::GradientRoute route = {};
  std::unique_ptr<Stream> stream = {};
};

void choose_engines(Setting& setting, Communicator& ranks) {
  const SyntheticOptions& options = setting.report.options;
  const trainers::ResolvedRun& run = setting.report.run;
  const trainers::ModelOptions& network = setting.report.network;
  const data::Synthetic images(
      {.images = run.batch.images, .classes = network.classes, .shape = network.image});
  trainers::Console console({.quiet = true});
  const trainers::SettledEngines settled = trainers::settle_run_engines(
      {run.request, run.batch, network, images, run.cuda_libraries, options.plan_file},
      *setting.stream,
      ranks,
      console);
  if (ranks.rank() != 0 || options.plan_file.empty() || settled.timed == 0) return;
  write_file_atomically(options.plan_file, to_json(settled.plans));
}

// A collective call.
Setting settle(const SyntheticOptions& options,
               const comm::Launch& launch,
               const comm::Connection& connection) {
  Communicator& ranks = *connection.ranks;
  const trainers::RunRequest request = run_request(options);
  const bool on_cuda = options.device == Device::kCuda;
  trainers::run_or_end_all_ranks(ranks, [&] {
    if (on_cuda) cuda::select_device(launch.local_rank, launch.local_size);
  });
  const int64_t threads = trainers::agreed_threads(request.threads, launch, ranks);
  const BatchDivision batch = divide_batch(request.batch, request.device, ranks.size(), threads);
  trainers::check_batch_norm(batch, std::nullopt, model_options(options), batch.images);
  const LibraryVersions libraries = trainers::agreed_cuda_libraries(request, ranks);
  Setting setting{.route = trainers::choose_gradient_route(request, connection.transport, ranks)};
  setting.report = {.options = options,
                    .run = {.request = request,
                            .batch = batch,
                            .threads = threads,
                            .transport = setting.route.transport,
                            .cuda_libraries = libraries},
                    .network = model_options(options)};
  setting.stream = std::make_unique<Stream>(
      options.device, on_cuda ? 1 : static_cast<int>(threads), trainers::may_spin(launch, threads));
  if (on_cuda) choose_engines(setting, ranks);
  return setting;
}

// Steps by the clock of the stream, in iterations.
class Iterations {
 public:
  Iterations(SyntheticTraining& training, Stream& stream, SyntheticReport& report)
      : training_(training), stream_(stream), clock_(stream), report_(report) {}

  void warm_up() {
    for (int64_t i = 0; i < report_.options.warmup_batches; ++i) {
      training_.step();
      note_first();
    }
    if (report_.options.warmup_batches > 0) training_.exchange_totals();
  }

  void run() {
    clock_.mark();
    for (int64_t i = 0; i < report_.options.batches_per_iteration; ++i) {
      training_.step();
      clock_.mark();
      note_first();
    }
    double sum_s = 0;
    for (const double step_s : clock_.take_seconds()) {
      report_.step_s.push_back(step_s);
      sum_s += step_s;
    }
    report_.iteration_s.push_back(sum_s);
    add(training_.exchange_totals());
  }

 private:
  void note_first() {
    if (report_.first_step_s > 0) return;
    stream_.synchronize();
    report_.first_step_s = trainers::seconds_since_process_start();
  }

  void add(const WindowTotals& totals) {
    for (const float loss : totals.losses) {
      if (std::isfinite(loss)) continue;
      throw DivergedError("the loss is not finite",
                          "steps on numbers that are not finite measure something else",
                          "fewer steps, or --num-warmup-batches 0");
    }
    report_.loss = totals.losses.back();
    report_.seconds.resize(totals.ranks.size());
    for (size_t rank = 0; rank < totals.ranks.size(); ++rank) {
      report_.seconds[rank] += totals.ranks[rank];
    }
  }

  SyntheticTraining& training_;
  Stream& stream_;
  StepClock clock_;
  SyntheticReport& report_;
};

double peak_rss_mib() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

}  // namespace

SyntheticReport measure_training(const SyntheticOptions& options,
                                 const comm::Launch& launch,
                                 const comm::Connection& connection) {
  Communicator& ranks = *connection.ranks;
  Setting setting = settle(options, launch, connection);
  SyntheticReport& report = setting.report;
  Mt19937 rng(report.run.request.seeds.weights);
  const auto model = trainers::make_model(report.network, nn::Init{rng, options.device});
  report.parameters = model->parameter_count();

  std::FILE* const out = options.json ? stderr : stdout;
  const Printer printer(ranks.rank() == 0 ? out : nullptr);
  if (!setting.route.note.empty()) printer.print(setting.route.note + "\n");
  printer.print(opening_text(report) + "Running warmup...\n");
  const int64_t steps = options.warmup_batches + options.iterations * options.batches_per_iteration;
  SyntheticTraining training({.run = report.run,
                              .network = report.network,
                              .ranks = ranks,
                              .stream = *setting.stream,
                              .model = *model,
                              .exchange = setting.route.exchange,
                              .input_steps = options.with_input ? steps : 0});
  Iterations iterations(training, *setting.stream, report);
  iterations.warm_up();
  printer.print("Running benchmark...\n");
  for (int64_t i = 0; i < options.iterations; ++i) {
    iterations.run();
    printer.print(iteration_text(report, static_cast<size_t>(i)));
  }
  report.peak_rss_mib = comm::gather_value(ranks, peak_rss_mib());
  printer.print(closing_text(report));
  return report;
}

}  // namespace lockstep::bench
