#include "bench/train/options.h"

#include <array>

#include "bench/flags.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kMany = 1'000'000;

// Flags that count, and where their values go.
class Counts {
 public:
  explicit Counts(Flags& flags) : flags_(flags) {}

  template <class Place>
  void add(const std::string& names,
           const std::string& initial,
           const std::string& help,
           int64_t min,
           int64_t max,
           Place& place) {
    const std::string flag = names.substr(names.rfind("--"));
    flags_.add(names, "N", initial, help, [=, &place](const std::string& text) {
      place = whole_number(flag, text, min, max);
    });
  }

 private:
  Flags& flags_;
};

void add_network(Flags& flags, SyntheticOptions& options) {
  Counts counts(flags);
  flags.add("-a,--arch,--model", "NAME", "resnet50", "the network", [&](const std::string& text) {
    options.arch = text;
  });
  counts.add("-b,--batch-size", "32", "images a rank", 1, kMany, options.batch_size);
  counts.add("--image-size",
             "",
             "height and width; 28, 32 or 224 by the network",
             1,
             4096,
             options.image_size);
  counts.add("--classes", "", "10, or 1000 by the network", 1, kMany, options.classes);
  flags.add_switch("--cifar-stem,--cifar_stem",
                   "3x3 stem of stride 1 without pooling: resnet18, resnet34",
                   options.cifar_stem);
}

void add_measurement(Flags& flags, SyntheticOptions& options) {
  Counts counts(flags);
  counts.add("--num-warmup-batches",
             "10",
             "steps before the measurement",
             0,
             kMany,
             options.warmup_batches);
  counts.add("--num-batches-per-iter",
             "10",
             "steps a timed iteration",
             1,
             kMany,
             options.batches_per_iteration);
  counts.add("--num-iters", "10", "timed iterations", 1, kMany, options.iterations);
  flags.add_switch(
      "--json", "one JSON object on standard output, all else on standard error", options.json);
}

void add_run(Flags& flags, SyntheticOptions& options) {
  Counts counts(flags);
  counts.add("--threads", "", "a rank; its share of the cores", 1, 1024, options.threads);
  counts.add("--shards", "", "pieces of a step's images over all ranks", 1, 65536, options.shards);
  counts.add("--bn-groups", "", "batch-norm groups; one a rank", 1, 65536, options.bn_groups);
  flags.add_switch(
      "--sync-bn,--sync_bn", "as --bn-groups 1: batch norm over all ranks", options.sync_bn);
  flags.add("--algorithm,--dist-backend",
            "NAME",
            "tree",
            "tree, ring, star, mpi or none (no exchange)",
            [&](const std::string& text) {
              options.algorithm = choice<Algorithm>("--algorithm", text, trainers::kAlgorithmNames);
            });
  add_connection(flags, options.connect);
  flags.add("--opt-level",
            "LEVEL",
            "O0",
            "O0: f32; O1 to O3 as train_resnet has them, without loss scaling",
            [&](const std::string& text) {
              options.opt_level =
                  choice<trainers::OptLevel>("--opt-level", text, trainers::kOptLevelNames);
            });
  flags.add("--dtype",
            "NAME",
            "bf16",
            "O1 to O3: the 16-bit type, f16 or bf16",
            [&](const std::string& text) {
              options.dtype = choice<Dtype>("--dtype", text, trainers::kHalfTypeNames);
            });
}

}  // namespace

SyntheticOptions read_synthetic_options(const std::vector<std::string>& arguments) {
  SyntheticOptions options;
  Flags flags("bench_train",
              "Images a second of whole training steps on one batch of random images.",
              "the flags of Horovod's synthetic benchmark and some of the trainers'");
  add_network(flags, options);
  add_measurement(flags, options);
  add_run(flags, options);
  options.help = flags.parse(arguments);
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
  request.precision = trainers::at_level(options.opt_level);
  request.precision.dtype = options.dtype;
  request.exchange.algorithm = options.algorithm;
  request.exchange.transport = options.connect.transport;
  request.batch.per_rank = options.batch_size;
  request.batch.shards = options.shards;
  request.threads = options.threads;
  request.batch.bn_groups = options.sync_bn ? 1 : options.bn_groups;
  return request;
}

}  // namespace lockstep::bench
