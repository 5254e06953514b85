// Ends a wait for the device when a collective on it never will.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/die.h"
#include "comm/nccl/ranks.h"
#include "core/cuda/stream.h"
#include "core/cuda/watch.h"

namespace lockstep::comm::nccl {

// While the host waits, NCCL is asked for failures, the peers for who is gone, and the clock for
// the deadline. Each ends NCCL's work and throws a CommError that names what was waited for,
// again where the streams still do not end.
class Watchdog : public cuda::Watch {
 public:
  // `streams`: that NCCL's work runs on, alone or in graphs.
  Watchdog(Ranks& ranks, std::vector<CUstream_st*> streams);

  // A collective is on its way, and `done` passes after it. What is `recorded` runs later, again
  // and again, and its event cannot be asked.
  void began(const cuda::Event& done, std::string_view label, bool recorded);

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
