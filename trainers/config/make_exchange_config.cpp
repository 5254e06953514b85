#include <algorithm>

#include <fmt/core.h>

#include "core/error.h"
#include "engine/settings/choice_names.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/config/rank_machine.h"

namespace lockstep::trainers {
namespace {

int64_t bytes_of(double mib) {
  return static_cast<int64_t>(mib * 0x1p20);
}

// Apex counts elements, whatever their type on the wire, and has no smaller first bucket.
comm::BucketCaps apex_caps(int64_t elements, const Options& options) {
  if (options.given("bucket-cap-mb") || options.given("first-bucket-mb")) {
    throw UsageError("--message-size and --bucket-cap-mb contradict each other",
                     "both set the size of gradient buckets, in elements and in MiB",
                     "one of them alone");
  }
  const Dtype wire = options.boolean("fp16-allreduce") ? Dtype::kF16 : Dtype::kF32;
  const int64_t bytes = elements * static_cast<int64_t>(size_of(wire));
  return {.first_bytes = bytes, .bytes = bytes};
}

// As in PyTorch's DistributedDataParallel, an explicit cap applies to the first bucket too.
comm::BucketCaps bucket_caps(const Options& options) {
  if (const auto elements = options.maybe_integer("message-size")) {
    return apex_caps(*elements, options);
  }
  const int64_t cap = bytes_of(options.number("bucket-cap-mb"));
  const bool one_cap = options.given("bucket-cap-mb") && !options.given("first-bucket-mb");
  return {.first_bytes = one_cap ? cap : bytes_of(options.number("first-bucket-mb")), .bytes = cap};
}

constexpr std::string_view kNccl = "nccl";
constexpr std::string_view kIpc = "ipc";
constexpr std::string_view kThreads = "threads";

void check_ipc(const Options& options) {
  if (options.text("transport") != kIpc) return;
  if (device_of(options) != Device::kCuda) {
    throw UsageError("--transport ipc needs --device cuda",
                     "CUDA IPC shares the memory of GPUs",
                     "--device cuda, or leave --transport at auto");
  }
  const std::string& algorithm = options.text("algorithm");
  if (algorithm != "tree" && algorithm != "none") {
    throw UsageError(fmt::format("--transport ipc has no --algorithm {}", algorithm),
                     "over CUDA IPC gradients are summed as a tree",
                     "--algorithm tree, or --transport shm or mpi");
  }
}

void check_nccl(const Options& options) {
  const bool over_nccl = options.text("transport") == kNccl;
  const std::string& algorithm = options.text("algorithm");
  if (device_of(options) != Device::kCuda && (over_nccl || algorithm == kNccl)) {
    throw UsageError(
        fmt::format("--{} nccl needs --device cuda", over_nccl ? "transport" : "algorithm"),
        "NCCL sums what lies on GPUs",
        "--device cuda, or leave --transport and --algorithm at auto and tree");
  }
  const bool is_hosts =
      algorithm != "tree" && algorithm != "ring" && algorithm != "none" && algorithm != kNccl;
  if (over_nccl && is_hosts) {
    throw UsageError(fmt::format("--transport nccl has no --algorithm {}", algorithm),
                     "over NCCL gradients are summed as a tree, in a ring, or by NCCL itself",
                     "--algorithm tree, ring or nccl, or --transport shm or mpi");
  }
  if (algorithm == kNccl && !over_nccl && options.text("transport") != "auto") {
    throw UsageError(fmt::format("--algorithm nccl and --transport {} contradict each other",
                                 options.text("transport")),
                     "NCCL's own sum needs NCCL to carry the gradients",
                     "--algorithm nccl alone, or --algorithm tree");
  }
}

void check_threads(const Options& options) {
  if (device_of(options) == Device::kCuda) {
    throw UsageError("--parallel dp computes on the CPU",
                     "one process drives one GPU here, so that ranks do not wait for each other's "
                     "launches",
                     "mpirun -np N without it, one rank per GPU; or --device cpu");
  }
  const std::string& transport = options.text("transport");
  if (transport != "auto" && transport != kThreads) {
    throw UsageError(
        fmt::format("--parallel dp and --transport {} contradict each other", transport),
        "threads of one process share their memory",
        "--parallel dp alone, or mpirun -np N without it");
  }
  const std::string& algorithm = options.text("algorithm");
  if (algorithm == "mpi") {
    throw UsageError("--parallel dp has no --algorithm mpi",
                     "without processes there is no MPI",
                     "--algorithm tree, ring or star");
  }
}

void read_rank_threads(const Options& options, ExchangeConfig& config) {
  const auto devices = options.maybe_integer("devices");
  const bool is_dp = options.text("parallel") == "dp" || options.text("transport") == kThreads;
  if (!is_dp && !devices) return;
  if (!is_dp) {
    throw UsageError(fmt::format("--devices {} needs --parallel dp", *devices),
                     "otherwise each rank is a process with a device of its own",
                     fmt::format("--parallel dp --devices {0}, or mpirun -np {0}", *devices));
  }
  if (!devices) {
    throw UsageError("--parallel dp needs --devices N",
                     "it trains N ranks as threads of one process",
                     "--parallel dp --devices 2");
  }
  check_threads(options);
  config.rank_threads = *devices;
}

void read_algorithm_and_transport(const Options& options, ExchangeConfig& config) {
  check_nccl(options);
  check_ipc(options);
  const std::string& algorithm = options.text("algorithm");
  const std::string& transport = options.text("transport");
  config.algorithm =
      algorithm == kNccl ? Algorithm::kLibrary : value_of(kAlgorithmNames, algorithm);
  const bool sums_on_gpus =
      config.algorithm == Algorithm::kTree || config.algorithm == Algorithm::kRing;
  const bool is_other = transport == kNccl || transport == kIpc || transport == kThreads;
  config.transport = is_other ? comm::Transport::kAuto : value_of(kTransportNames, transport);
  if (transport == kNccl || algorithm == kNccl) {
    config.on_device = DeviceTransport::kNccl;
  } else if (transport == kIpc) {
    config.on_device = DeviceTransport::kIpc;
  } else if (transport != "auto" || !sums_on_gpus || device_of(options) != Device::kCuda) {
    config.on_device = DeviceTransport::kHost;
  }
}

void check(const ExchangeConfig& config, bool asked_to_check_ranks) {
  const bool sums_by_mpi =
      config.algorithm == Algorithm::kLibrary && config.on_device == DeviceTransport::kHost;
  const bool is_shm = config.transport == comm::Transport::kShm;
  if (sums_by_mpi && (is_shm || config.transport == comm::Transport::kTcp)) {
    const std::string_view transport = is_shm ? "shm" : "tcp";
    throw UsageError(
        fmt::format("--algorithm mpi and --transport {} contradict each other", transport),
        "MPI's own sum needs MPI to carry the gradients",
        fmt::format("--algorithm mpi alone, or --transport {} with tree, ring or star", transport));
  }
  if (sums_by_mpi && config.wire != Dtype::kF32) {
    throw UsageError("--algorithm mpi and --fp16-allreduce contradict each other",
                     "MPI cannot sum f16",
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
  read_rank_threads(options, config);
  read_algorithm_and_transport(options, config);
  config.caps = bucket_caps(options);
  config.overlap = options.boolean("overlap");
  config.wire = options.boolean("fp16-allreduce") ? Dtype::kF16 : Dtype::kF32;
  config.predivide = options.number("gradient-predivide-factor");
  config.zero_unused = options.text("unused") == "zero";
  config.check_ranks = options.integer("check-ranks");
  check(config, options.given("check-ranks"));
  if (config.algorithm == Algorithm::kLibrary && config.on_device == DeviceTransport::kHost) {
    config.transport = comm::Transport::kMpi;
  }
  return config;
}

}  // namespace lockstep::trainers
