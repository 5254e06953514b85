#include "bench/train/options.h"

#include <array>

#include "bench/flags.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kMany = 1'000'000;
constexpr std::array kDeviceNames = {Named<Device>(Device::kCpu, "cpu"),
                                     Named<Device>(Device::kCuda, "cuda")};

void add_network(Flags& flags, SyntheticOptions& options) {
  flags.add("-a,--arch,--model", "NAME", "resnet50", "the network", [&](const std::string& text) {
    options.arch = text;
  });
  flags.add_number("-b,--batch-size", "images per rank", 1, kMany, options.batch_size);
  flags.add_number("--image-size",
                   "height and width; 28, 32 or 224 by the network",
                   1,
                   4096,
                   options.image_size);
  flags.add_number("--classes", "10, or 1000 by the network", 1, kMany, options.classes);
  flags.add_switch("--cifar-stem,--cifar_stem",
                   "3x3 stem of stride 1 without pooling: resnet18, resnet34",
                   options.cifar_stem);
}

void add_measurement(Flags& flags, SyntheticOptions& options) {
  flags.add_number(
      "--num-warmup-batches", "steps before the measurement", 0, kMany, options.warmup_batches);
  flags.add_number("--num-batches-per-iter",
                   "steps per timed iteration",
                   1,
                   kMany,
                   options.batches_per_iteration);
  flags.add_number("--num-iters", "timed iterations", 1, kMany, options.iterations);
  flags.add_switch(
      "--json", "one JSON object on standard output, all else on standard error", options.json);
}

void add_device(Flags& flags, SyntheticOptions& options) {
  flags.add_choice("--device", "NAME", "cpu or cuda", kDeviceNames, options.device);
  flags.add_switch("--no-graph", "on CUDA: no step is recorded as a graph", options.no_graph);
  flags.add_switch("--with-input",
                   "images come from the loader, as in a training; else one batch stays on the "
                   "device",
                   options.with_input);
  flags.add_switch("--against-cpu",
                   "on CUDA: instead of a measurement, one step whose every result and gradient is "
                   "compared with the CPU's",
                   options.against_cpu);
  flags.add_number("-j,--workers", "loader threads per rank", 0, 1024, options.workers);
  flags.add_switch("--autotune", "on CUDA: choose cuDNN's engines by time", options.autotune);
  flags.add("--plan-file",
            "FILE",
            "",
            "engines that --autotune chose; those it chooses now go there",
            [&](const std::string& text) { options.plan_file = text; });
}

void add_run(Flags& flags, SyntheticOptions& options) {
  flags.add_number("--threads", "per rank; its share of the cores", 1, 1024, options.threads);
  flags.add_number(
      "--shards", "pieces of a step's images over all ranks", 1, 65536, options.shards);
  flags.add_number("--bn-groups", "batch-norm groups; one per rank", 1, 65536, options.bn_groups);
  flags.add_switch(
      "--sync-bn,--sync_bn", "as --bn-groups 1: batch norm over all ranks", options.sync_bn);
  flags.add_choice("--algorithm,--dist-backend",
                   "NAME",
                   names_of<Algorithm>(kAlgorithmNames) + " (no exchange)",
                   kAlgorithmNames,
                   options.algorithm);
  add_connection(flags, options.connect);
  flags.add_choice("--opt-level",
                   "LEVEL",
                   "O0: f32; O1 to O3 as train_resnet has them",
                   kOptLevelNames,
                   options.opt_level);
  flags.add_choice(
      "--dtype", "NAME", "O1 to O3: the 16-bit type, f16 or bf16", kHalfTypeNames, options.dtype);
}

}  // namespace

SyntheticOptions read_synthetic_options(const std::vector<std::string>& arguments) {
  SyntheticOptions options;
  Flags flags("bench_train",
              "Images/s of whole training steps on one batch of random images.",
              "the flags of Horovod's synthetic benchmark and some of the trainers'");
  add_network(flags, options);
  add_measurement(flags, options);
  add_device(flags, options);
  add_run(flags, options);
  options.help = flags.parse(arguments);
  const int64_t groups = options.bn_groups.value_or(1);
  if (options.sync_bn && groups > 1) {
    throw UsageError(fmt::format("--sync-bn and --bn-groups {} contradict each other", groups),
                     "--sync-bn is --bn-groups 1",
                     "one of them");
  }
  return options;
}

std::string_view synthetic_advice(Remedy remedy) {
  if (remedy == Remedy::kSmallerBatch) return "-b sets the batch";
  if (remedy == Remedy::kAlgorithm) return "--algorithm names it";
  return connection_advice(remedy);
}

trainers::ModelOptions model_options(const SyntheticOptions& options) {
  trainers::ModelOptions network = trainers::usual_network(options.arch, options.cifar_stem);
  if (options.image_size) network.image.height = network.image.width = *options.image_size;
  network.classes = options.classes.value_or(network.classes);
  return network;
}

trainers::RunRequest run_request(const SyntheticOptions& options) {
  trainers::RunRequest request;
  request.arch = options.arch;
  request.precision = at_level(options.opt_level);
  request.precision.dtype = options.dtype;
  if (request.precision.is_mixed() && options.dtype == Dtype::kF16) {
    request.precision.loss_scaling.emplace();
  }
  request.optimizer = {.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4};
  request.epochs = 1;
  request.device = options.device;
  request.graph = !options.no_graph;
  request.workers = options.workers;
  request.autotune = options.autotune;
  request.plan_file = options.plan_file;
  request.test.batch = options.batch_size;
  request.exchange.algorithm = options.algorithm;
  request.exchange.transport = options.connect.transport;
  const bool chosen_by_device = options.device == Device::kCuda &&
                                options.connect.transport == comm::Transport::kAuto &&
                                options.algorithm != Algorithm::kStar;
  if (!chosen_by_device) request.exchange.on_device = DeviceTransport::kHost;
  request.stall_abort_s = options.connect.stall_abort.count();
  request.batch.per_rank = options.batch_size;
  request.batch.shards = options.shards;
  request.threads = options.threads;
  request.batch.bn_groups = options.sync_bn ? 1 : options.bn_groups;
  return request;
}

}  // namespace lockstep::bench
