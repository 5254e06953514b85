#include "trainers/loop/nccl_ranks.h"

#include <chrono>
#include <span>

#include "comm/handshake.h"
#include "comm/nccl/exchange.h"
#include "core/cuda/device.h"
#include "trainers/loop/agree.h"

namespace lockstep::trainers {
namespace {

// Empty: every rank has NCCL.
std::string what_is_missing(Communicator& ranks) {
  std::string mine;
  try {
    comm::nccl::api();
  } catch (const EnvironmentError& error) {
    mine = fmt::format("{} ({})", error.what(), error.why());
  }
  int64_t without = mine.empty() ? 0 : 1;
  ranks.all_reduce_sum(std::span(&without, 1));
  if (without == 0) return {};
  return mine.empty() ? fmt::format("{} of {} ranks have no NCCL", without, ranks.size()) : mine;
}

bool exchanges_on_device(const RunConfig& config) {
  const bool trains = !config.evaluate && !config.lr_dry_run && !config.explain_precision;
  return trains && config.device == Device::kCuda && config.exchange.keeps_replicas();
}

}  // namespace

NcclRanks meet_over_nccl(RunConfig& config, Communicator& ranks) {
  if (config.exchange.nccl == UseNccl::kNo || !exchanges_on_device(config)) return {};
  if (config.exchange.nccl == UseNccl::kAuto) {
    if (ranks.size() == 1) return {};
    if (const std::string missing = what_is_missing(ranks); !missing.empty()) {
      return {.ranks = nullptr,
              .note = fmt::format("note: gradients travel through the host: {}", missing)};
    }
  }
  NcclRanks met;
  on_all_ranks(ranks, [] { comm::nccl::api(); });
  const comm::HandshakeField version = {
      comm::HandshakeField::Kind::kEnvironment, "NCCL", comm::nccl::api().version()};
  comm::handshake(ranks, std::span(&version, 1));
  on_all_ranks(ranks, [&] {
    comm::nccl::check_devices_differ(ranks, cuda::device_properties().uuid);
    met.ranks =
        std::make_unique<comm::nccl::Ranks>(ranks, std::chrono::seconds(config.stall_abort_s));
  });
  config.exchange.nccl = UseNccl::kYes;
  config.transport = "nccl";
  return met;
}

comm::MakeDeviceExchange exchange_over(comm::nccl::Ranks* ranks) {
  if (ranks == nullptr) return {};
  return [ranks](Communicator&, Stream& compute, std::span<const comm::Bucket> buckets) {
    return std::make_unique<comm::nccl::NcclExchange>(*ranks, compute, buckets);
  };
}

}  // namespace lockstep::trainers
