// Ends a wait for the device whose work waits for a rank that is gone.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "comm/die.h"
#include "core/communicator.h"
#include "core/cuda/ipc.h"
#include "core/cuda/watch.h"
#include "core/error.h"
#include "core/function_ref.h"

namespace lockstep::comm::ipc {

// An event of a process that has ended may never pass, and then a stream that waits for it never
// ends. While the host waits for the device, peers are looked after and the clock is.
class Watchdog : public cuda::Watch {
 public:
  Watchdog(Communicator& peers,
           std::chrono::milliseconds deadline,
           std::vector<CUstream_st*> streams)
      : Watch(std::move(streams)), peers_(peers), deadline_(deadline) {}

  // A sum is on its way, and `done` passes after this rank's part of it.
  void began(const cuda::InterprocessEvent& done, const std::string& label);
  // Calls of the communicator, whose error is kept for before_end().
  void guard(FunctionRef<void()> calls);

  // Errors: CommError for a lost rank or a deadline that has passed.
  void look(std::chrono::steady_clock::duration waited) override;

 private:
  struct Sum {
    cuda::InterprocessEvent done;
    std::string label;
  };
  // Streams cannot be given up. What went wrong first is said.
  [[noreturn]] void end_process(const Error& why) noexcept override { die(why); }
  // "the sum of bucket 2 (...)": the first that is not done.
  std::string awaited() const;

  Communicator& peers_;
  std::chrono::milliseconds deadline_;
  std::vector<Sum> sums_;  // in their order
  std::optional<CommError> failure_;
};

}  // namespace lockstep::comm::ipc
