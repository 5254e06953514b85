// Sums values on GPUs over ranks, through the hosts' memory.
#pragma once

#include <map>
#include <memory>

#include "comm/device_exchange.h"
#include "core/communicator.h"
#include "core/cuda/stream.h"
#include "core/stream.h"

namespace lockstep::comm {

// The values go to page-locked memory on a stream of their own, beside what `compute` does next;
// wait() sums them over ranks there and sends them back. advance() does nothing: otherwise ranks
// whose GPUs are at different points would make their calls in different orders.
// Memory: the values' size in page-locked memory, for each tensor that was ever summed.
class StagedExchange : public DeviceExchange {
 public:
  // Both must outlive this.
  StagedExchange(Communicator& peers, Stream& compute);

  std::unique_ptr<Work> start(const AllReduce& what) override;

 private:
  // The copy of a tensor on the host, and when it goes there and comes back.
  struct Route {
    Tensor on_host;
    cuda::Event ready, fetched, returned;
  };
  class SumOnHost;

  Communicator& peers_;
  Stream& compute_;
  Stream copies_;
  std::map<const std::byte*, Route> routes_;  // by the values' address
};

}  // namespace lockstep::comm
