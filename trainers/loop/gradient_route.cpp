#include "trainers/loop/gradient_route.h"

#include <chrono>
#include <span>

#include <fmt/core.h>

#include "comm/handshake.h"
#include "comm/ipc/exchange.h"
#include "comm/ipc/trial.h"
#include "comm/nccl/connect.h"
#include "core/cuda/device.h"
#include "trainers/loop/agree.h"

namespace lockstep::trainers {
namespace {

// Empty: every rank has NCCL.
std::string what_is_missing(Communicator& ranks) {
  std::string mine;
  try {
    comm::nccl::version();
  } catch (const EnvironmentError& error) {
    mine = fmt::format("{} ({})", error.what(), error.why());
  }
  int64_t without = mine.empty() ? 0 : 1;
  ranks.all_reduce_sum(std::span(&without, 1));
  if (without == 0) return {};
  return mine.empty() ? fmt::format("{} of {} ranks have no NCCL", without, ranks.size()) : mine;
}

// Empty: NCCL can serve.
std::string nccl_obstacle(Communicator& ranks) {
  try {
    comm::nccl::check_devices_differ(ranks, cuda::device_properties().uuid);
  } catch (const EnvironmentError& error) {  // on all ranks alike
    return fmt::format("{} ({})", error.what(), error.why());
  }
  return what_is_missing(ranks);
}

// Empty: CUDA IPC can serve.
std::string ipc_obstacle(const RunConfig& config, Communicator& ranks) {
  if (config.exchange.algorithm != Algorithm::kTree) return "its sums are trees";
  if (config.transport != "shm") return "the ranks do not share memory";
  return comm::ipc::obstacle(ranks, std::chrono::seconds(config.stall_abort_s));
}

GradientRoute over_nccl(RunConfig& config, Communicator& ranks) {
  GradientRoute route;
  on_all_ranks(ranks, [] { comm::nccl::version(); });
  const comm::HandshakeField version = {
      comm::HandshakeField::Kind::kEnvironment, "NCCL", comm::nccl::version()};
  comm::handshake(ranks, std::span(&version, 1));
  on_all_ranks(ranks, [&] {
    comm::nccl::check_devices_differ(ranks, cuda::device_properties().uuid);
    route.exchange = comm::nccl::connect(ranks, std::chrono::seconds(config.stall_abort_s));
  });
  config.exchange.on_device = DeviceTransport::kNccl;
  config.transport = "nccl";
  return route;
}

GradientRoute over_ipc(RunConfig& config, const std::string& note) {
  config.exchange.on_device = DeviceTransport::kIpc;
  config.transport = "ipc";
  const auto deadline = std::chrono::seconds(config.stall_abort_s);
  return {
      .exchange =
          [deadline](Communicator& peers, Stream& compute, std::span<const comm::Bucket> buckets) {
            return std::make_unique<comm::ipc::IpcExchange>(peers, compute, buckets, deadline);
          },
      .note = note};
}

GradientRoute over_ipc_or_none(RunConfig& config, Communicator& ranks) {
  if (ranks.size() == 1) return {};
  const std::string obstacle = ipc_obstacle(config, ranks);
  on_all_ranks(ranks, [&] {
    if (obstacle.empty()) return;
    throw EnvironmentError("the ranks cannot exchange gradients over CUDA IPC",
                           obstacle,
                           "--transport auto, which takes what there is, or shm, nccl or mpi");
  });
  return over_ipc(config, {});
}

GradientRoute best(RunConfig& config, Communicator& ranks) {
  if (ranks.size() == 1) return {};
  const std::string no_nccl = nccl_obstacle(ranks);
  if (no_nccl.empty()) return over_nccl(config, ranks);
  const std::string no_ipc = ipc_obstacle(config, ranks);
  if (no_ipc.empty()) {
    return over_ipc(config, fmt::format("note: gradients travel over CUDA IPC: {}", no_nccl));
  }
  return {.exchange = {},
          .note = fmt::format(
              "note: gradients travel through the host: {}; no CUDA IPC: {}", no_nccl, no_ipc)};
}

bool exchanges_on_device(const RunConfig& config) {
  const bool trains = !config.evaluate && !config.lr_dry_run && !config.explain_precision;
  return trains && config.device == Device::kCuda && config.exchange.keeps_replicas();
}

}  // namespace

GradientRoute choose_gradient_route(RunConfig& config, Communicator& ranks) {
  if (!exchanges_on_device(config)) return {};
  switch (config.exchange.on_device) {
    case DeviceTransport::kHost:
      return {};
    case DeviceTransport::kAuto:
      return best(config, ranks);
    case DeviceTransport::kNccl:
      return over_nccl(config, ranks);
    case DeviceTransport::kIpc:
      return over_ipc_or_none(config, ranks);
  }
  return {};
}

}  // namespace lockstep::trainers
