// Sums over ranks of values on a GPU, for ranks that meet in the host's memory.
#pragma once

#include <map>
#include <memory>

#include "core/communicator.h"
#include "core/cuda/stream.h"
#include "core/stream.h"

namespace lockstep::comm {

// The values go to page-locked memory on a stream of their own, beside what `compute` does next;
// wait() sums them over ranks there and sends them back. advance() does nothing: ranks whose GPUs
// are not equally far would else make their calls in different orders.
// Memory: the values' size in page-locked memory, for each tensor that was ever summed.
// Thread safety: none.
class StagedExchange {
 public:
  // Both must outlive this.
  StagedExchange(Communicator& peers, Stream& compute);

  // Takes what `compute` has been given up to now; after wait(), what it is given then sees the
  // sum. `what.values` stay the same tensor from call to call, and one such work is under way.
  std::unique_ptr<Work> start(const AllReduce& what);

 private:
  // A tensor's way there and back.
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
