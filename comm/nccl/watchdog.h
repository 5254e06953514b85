// Ends a wait for the device when a collective there will never complete.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/die.h"
#include "comm/nccl/ranks.h"
#include "core/cuda/stream.h"
#include "core/cuda/watch.h"

namespace lockstep::comm::nccl {

// While the host waits, this asks NCCL for failures and the peers for ranks that are gone, and
// checks the deadline. In each case it ends NCCL's work and throws a CommError that names the
// awaited collective; it throws again if the streams still do not end.
class Watchdog : public cuda::Watch {
 public:
  // `streams`: those that NCCL's work runs on, alone or in graphs.
  Watchdog(Ranks& ranks, const std::vector<CUstream_st*>& streams);

  // Registers a collective that is under way; `done` completes after it. One that is `recorded` in
  // a graph runs later, again and again, and its event cannot be queried.
  void track(const cuda::Event& done, std::string_view label, bool recorded);

  void look(std::chrono::steady_clock::duration waited) override;

 private:
  [[noreturn]] void end_process(const Error& why) noexcept override { die(why); }

  struct Collective {
    cuda::Event done;
    std::string label;
    bool recorded = false;  // when it was given last
  };

  // "the sum of bucket 2 (...)": the first that is not done.
  std::string awaited() const;

  Ranks& ranks_;
  std::vector<Collective> collectives_;  // in their order
};

}  // namespace lockstep::comm::nccl
