// Sums over ranks of values that lie on GPUs.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "comm/bucket.h"
#include "core/communicator.h"
#include "core/stream.h"

namespace lockstep::comm {

// Thread safety: none.
class DeviceExchange {
 public:
  DeviceExchange() = default;
  DeviceExchange(const DeviceExchange&) = delete;
  DeviceExchange& operator=(const DeviceExchange&) = delete;
  virtual ~DeviceExchange() = default;

  // Takes what the compute stream has been given up to now; after wait(), what it is given then
  // sees the sum. `what.values` stay the same tensor from call to call, and one such work is under
  // way. Errors: CommError, UsageError for an algorithm that it does not have.
  virtual std::unique_ptr<Work> start(const AllReduce& what) = 0;
  // Peers for other exchanges between the ranks' GPUs; null where there is no way. Lives as long as
  // this.
  virtual DevicePeers* peers() { return nullptr; }
};

// A collective call. The exchange may keep its arguments.
using MakeDeviceExchange = std::function<std::unique_ptr<DeviceExchange>(
    Communicator& peers, Stream& compute, std::span<const Bucket> buckets)>;

}  // namespace lockstep::comm
