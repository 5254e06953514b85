#include "comm/nccl/connect.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include <fmt/core.h>

#include "comm/gather.h"
#include "comm/nccl/exchange.h"

namespace lockstep::comm::nccl {

std::string version() {
  return api().version();
}

void check_devices_differ(Communicator& peers, std::string_view device) {
  using Name = std::array<char, 64>;
  Name mine{};
  device.copy(mine.data(), mine.size() - 1);
  const std::vector<Name> all = gather_value(peers, mine);
  for (auto later = all.begin(); later != all.end(); ++later) {
    const auto earlier = std::find(all.begin(), later, *later);
    if (earlier == later) continue;
    throw EnvironmentError(
        fmt::format("ranks {} and {} share a GPU", earlier - all.begin(), later - all.begin()),
        fmt::format("both have {}; NCCL takes one rank a GPU", later->data()),
        "a GPU for each rank (CUDA_VISIBLE_DEVICES), or --transport ipc, shm or mpi");
  }
}

MakeDeviceExchange connect(Communicator& peers, std::chrono::milliseconds deadline) {
  return [ranks = std::make_shared<Ranks>(peers, deadline)](
             Communicator&, Stream& compute, std::span<const Bucket> buckets) {
    return std::make_unique<NcclExchange>(*ranks, compute, buckets);
  };
}

}  // namespace lockstep::comm::nccl
