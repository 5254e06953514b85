#include "trainers/config/exchange_config.h"

#include <algorithm>

#include "core/error.h"
#include "trainers/config/choice_names.h"

namespace lockstep::trainers {
namespace {

int64_t bytes_of(double mib) {
  return static_cast<int64_t>(mib * 0x1p20);
}

// As in PyTorch's DistributedDataParallel, a cap that was asked for holds for the first bucket too.
comm::BucketCaps bucket_caps(const Options& options) {
  const int64_t cap = bytes_of(options.number("bucket-cap-mb"));
  const bool one_cap = options.given("bucket-cap-mb") && !options.given("first-bucket-mb");
  return {.first_bytes = one_cap ? cap : bytes_of(options.number("first-bucket-mb")), .bytes = cap};
}

void check(const ExchangeConfig& config, bool asked_to_check_ranks) {
  if (config.algorithm == Algorithm::kLibrary && config.transport == comm::Transport::kShm) {
    throw UsageError("--algorithm mpi and --transport shm contradict each other",
                     "MPI's own sum needs MPI to carry the gradients",
                     "--algorithm mpi alone, or --transport shm with tree, ring or star");
  }
  if (config.algorithm == Algorithm::kLibrary && config.wire != Dtype::kF32) {
    throw UsageError("--algorithm mpi and --fp16-allreduce contradict each other",
                     "MPI's own sum knows no f16",
                     "--fp16-allreduce with --algorithm tree, ring or star, or neither");
  }
  if (!config.keeps_replicas() && asked_to_check_ranks && config.check_ranks > 0) {
    throw UsageError(
        fmt::format("--algorithm none and --check-ranks {} contradict each other",
                    config.check_ranks),
        "without an exchange the ranks' weights differ from the first step on",
        fmt::format("--algorithm none alone, or --check-ranks {} with tree", config.check_ranks));
  }
}

}  // namespace

ExchangeConfig make_exchange_config(const Options& options) {
  ExchangeConfig config;
  config.algorithm = meant(kAlgorithmNames, options.text("algorithm"));
  config.transport = meant(kTransportNames, options.text("transport"));
  config.caps = bucket_caps(options);
  config.overlap = options.boolean("overlap");
  config.wire = options.boolean("fp16-allreduce") ? Dtype::kF16 : Dtype::kF32;
  config.predivide = options.number("gradient-predivide-factor");
  config.zero_unused = options.text("unused") == "zero";
  config.check_ranks = options.integer("check-ranks");
  check(config, options.given("check-ranks"));
  if (config.algorithm == Algorithm::kLibrary) config.transport = comm::Transport::kMpi;
  return config;
}

comm::ReducerOptions reducer_options(const ExchangeConfig& config, int64_t micro_steps) {
  return {.caps = config.caps,
          .algorithm = config.algorithm,
          .overlap = config.overlap,
          .wire = config.wire,
          .predivide = static_cast<float>(config.predivide),
          .micro_steps = micro_steps,
          .zero_unused = config.zero_unused};
}

std::string_view name_of(Algorithm algorithm) {
  for (const auto& [key, name] : kAlgorithmNames) {
    if (key == algorithm) return name;
  }
  throw InternalError(
      fmt::format("[exchange_config] no name for algorithm {}", static_cast<int>(algorithm)));
}

}  // namespace lockstep::trainers
