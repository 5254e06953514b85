#include "comm/nccl/connect.h"

#include <memory>

#include "comm/nccl/exchange.h"

namespace lockstep::comm::nccl {

std::string version() {
  return api().version();
}

MakeDeviceExchange connect(Communicator& peers, std::chrono::milliseconds deadline) {
  return [ranks = std::make_shared<Ranks>(peers, deadline)](
             Communicator&, Stream& compute, std::span<const Bucket> buckets) {
    return std::make_unique<NcclExchange>(*ranks, compute, buckets);
  };
}

}  // namespace lockstep::comm::nccl
