#include "bench/train/synthetic_training.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <sys/resource.h>

#include "bench/ranks.h"
#include "core/error.h"
#include "data/batch_plan.h"
#include "data/synthetic.h"
#include "nn/functional.h"
#include "trainers/config/rank_machine.h"
#include "trainers/report/process.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

SyntheticTraining::SyntheticTraining(const trainers::ResolvedRun& run,
                                     const trainers::ModelOptions& network,
                                     Communicator& ranks,
                                     Stream& stream,
                                     nn::Module& model)
    : ranks_(ranks),
      stream_(stream),
      model_(model),
      batch_norm_peers_(ranks),
      batch_(make_batch(run.batch, network, ranks.rank())),
      precision_(run.request.precision.network()),
      stored_(run.request.precision, model.named_parameters()),
      reducer_(ranks,
               stream,
               model.parameters(),
               model.parameter_names(),
               trainers::reducer_options(run.request.exchange, run.batch.micro_steps)),
      optimizer_(model.named_parameters(), {.lr = 0.01F, .momentum = 0.9F, .weight_decay = 1e-4F}) {
  if (any_group_spans_ranks(run.batch.shards, run.batch.bn_groups, run.batch.ranks)) {
    batch_.shards.peers = &batch_norm_peers_;
  }
  stored_.refresh(stream);
}

SyntheticTraining::Batch SyntheticTraining::make_batch(const trainers::BatchDivision& cut,
                                                       const trainers::ModelOptions& network,
                                                       int rank) {
  const data::Synthetic dataset(
      {.images = cut.images, .classes = network.classes, .shape = network.image});
  const data::EpochPlan plan({.dataset_size = cut.images,
                              .global_batch = cut.images,
                              .shards = cut.shards,
                              .groups = cut.bn_groups,
                              .rank = rank,
                              .ranks = cut.ranks},
                             0);
  const data::MicroBatch mine = plan.micro_batch(0, 0);
  const auto [channels, height, width] = network.image;
  const auto count = std::ssize(mine.images);
  Batch batch{.images = Tensor::empty({count, channels, height, width}, Dtype::kU8),
              .labels = Tensor::empty({count}, Dtype::kI32),
              .shards = mine.shards};
  const int64_t pixels = network.image.numel();
  for (int64_t k = 0; k < count; ++k) {
    const int64_t image = mine.images[static_cast<size_t>(k)];
    dataset.read(image,
                 batch.images.span<uint8_t>().subspan(static_cast<size_t>(k * pixels),
                                                      static_cast<size_t>(pixels)));
    batch.labels.data<int32_t>()[k] = dataset.label(image);
  }
  return batch;
}

double SyntheticTraining::step() {
  const Clock::time_point start = Clock::now();
  const double batch_norm_s = batch_norm_peers_.seconds();
  optimizer_.zero_grad();
  const Var images =
      nn::normalize_image(batch_.images, nn::make_batch(stream_, batch_.shards, true, precision_));
  nn::CrossEntropy result = nn::softmax_cross_entropy(model_.forward(images), batch_.labels);
  window_.add(result);
  result.loss.backward();
  reducer_.finish();
  const double exposed_s = reducer_.times().exposed_s + batch_norm_peers_.seconds() - batch_norm_s;
  window_.end_step({.own = seconds_since(start) - exposed_s,
                    .exposed = exposed_s,
                    .hidden = reducer_.times().hidden_s});
  optimizer_.step(stream_);
  stored_.round(stream_);
  return seconds_since(start);
}

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
  const trainers::ResolvedRun run{.request = request,
                                  .batch = trainers::divide_batch(request, ranks.size(), threads),
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

}  // namespace lockstep::bench
