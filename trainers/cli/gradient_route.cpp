#include "trainers/cli/gradient_route.h"

#include <chrono>
#include <span>

#include <fmt/core.h>

#include "comm/handshake.h"
#include "comm/ipc/exchange.h"
#include "comm/nccl/connect.h"
#include "core/cuda/device.h"
#include "trainers/report/errors.h"

namespace lockstep::trainers {
namespace {

// Returns the reason why not every rank has NCCL; empty: every rank has it.
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

// Returns the reason why NCCL cannot be used; empty: it can.
std::string why_no_nccl(Communicator& ranks) {
  try {
    comm::check_devices_differ(ranks, cuda::device_properties().uuid);
  } catch (const EnvironmentError& error) {  // on all ranks alike
    return fmt::format("{} ({})", error.what(), error.why());
  }
  return what_is_missing(ranks);
}

// Returns the reason why CUDA IPC cannot be used; empty: it can.
std::string why_no_ipc(const RunRequest& request,
                       std::string_view host_transport,
                       Communicator& ranks) {
  if (request.exchange.algorithm != Algorithm::kTree) return "its sums are trees";
  if (host_transport != "shm") return "the ranks do not share memory";
  return comm::ipc::why_unavailable(ranks, std::chrono::seconds(request.stall_abort_s));
}

GradientRoute through_host(std::string_view host_transport, const std::string& note = {}) {
  return {.exchange = {}, .transport = std::string(host_transport), .note = note};
}

GradientRoute over_nccl(const RunRequest& request, Communicator& ranks) {
  GradientRoute route;
  route.transport = "nccl";
  run_or_end_all_ranks(ranks, [] { comm::nccl::version(); });
  const comm::HandshakeField version = {
      comm::HandshakeField::Kind::kEnvironment, "NCCL", comm::nccl::version()};
  comm::handshake(ranks, std::span(&version, 1));
  run_or_end_all_ranks(ranks, [&] {
    comm::check_devices_differ(ranks, cuda::device_properties().uuid);
    route.exchange = comm::nccl::connect(ranks, std::chrono::seconds(request.stall_abort_s));
  });
  return route;
}

GradientRoute over_ipc(const RunRequest& request, const std::string& note = {}) {
  const auto deadline = std::chrono::seconds(request.stall_abort_s);
  return {
      .exchange =
          [deadline](Communicator& peers, Stream& compute, std::span<const comm::Bucket> buckets) {
            return std::make_unique<comm::ipc::IpcExchange>(peers, compute, buckets, deadline);
          },
      .transport = "ipc",
      .note = note};
}

GradientRoute over_ipc_or_none(const RunRequest& request,
                               std::string_view host_transport,
                               Communicator& ranks) {
  if (ranks.size() == 1) return through_host(host_transport);
  const std::string problem = why_no_ipc(request, host_transport, ranks);
  run_or_end_all_ranks(ranks, [&] {
    if (problem.empty()) return;
    throw EnvironmentError("the ranks cannot exchange gradients over CUDA IPC",
                           problem,
                           "--transport auto, which takes what there is, or shm, nccl or mpi");
  });
  return over_ipc(request);
}

GradientRoute best(const RunRequest& request,
                   std::string_view host_transport,
                   Communicator& ranks) {
  if (ranks.size() == 1) return through_host(host_transport);
  const std::string no_nccl = why_no_nccl(ranks);
  if (no_nccl.empty()) return over_nccl(request, ranks);
  const std::string no_ipc = why_no_ipc(request, host_transport, ranks);
  if (no_ipc.empty()) {
    return over_ipc(request, fmt::format("note: gradients travel over CUDA IPC: {}", no_nccl));
  }
  return through_host(
      host_transport,
      fmt::format("note: gradients travel through the host: {}; no CUDA IPC: {}", no_nccl, no_ipc));
}

bool exchanges_on_device(const RunRequest& request) {
  const bool trains = !request.evaluate && !request.lr_dry_run && !request.explain_precision;
  return trains && request.device == Device::kCuda && request.exchange.keeps_replicas();
}

}  // namespace

GradientRoute choose_gradient_route(const RunRequest& request,
                                    std::string_view host_transport,
                                    Communicator& ranks) {
  if (!exchanges_on_device(request)) return through_host(host_transport);
  switch (request.exchange.on_device) {
    case DeviceTransport::kHost:
      return through_host(host_transport);
    case DeviceTransport::kAuto:
      return best(request, host_transport, ranks);
    case DeviceTransport::kNccl:
      return over_nccl(request, ranks);
    case DeviceTransport::kIpc:
      return over_ipc_or_none(request, host_transport, ranks);
  }
  return through_host(host_transport);
}

}  // namespace lockstep::trainers
