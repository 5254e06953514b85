// Ends a wait for the device when the work there waits for a rank that is gone.
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

// An event of a process that has ended may never complete, and then a stream that waits for it
// never does. While the host waits for the device, this checks the peers and the deadline.
class Watchdog : public cuda::Watch {
 public:
  Watchdog(Communicator& peers,
           std::chrono::milliseconds deadline,
           const std::vector<CUstream_st*>& streams)
      : Watch(streams), peers_(peers), deadline_(deadline) {}

  // Registers a sum that is under way; `done` completes after this rank's part of it.
  void track(const cuda::InterprocessEvent& done, const std::string& label);
  // Makes calls of the communicator. Keeps their error, which look() throws again.
  void guard(FunctionRef<void()> calls);

  // Errors: CommError for a lost rank or a deadline that has passed.
  void look(std::chrono::steady_clock::duration waited) override;

 private:
  struct Sum {
    cuda::InterprocessEvent done;
    std::string label;
  };
  // The work of a stream cannot be abandoned, so the process ends with the first error.
  [[noreturn]] void end_process(const Error& why) noexcept override { die(why); }
  // "the sum of bucket 2 (...)": the first that is not done.
  std::string awaited() const;

  Communicator& peers_;
  std::chrono::milliseconds deadline_;
  std::vector<Sum> sums_;  // in their order
  std::optional<CommError> failure_;
};

}  // namespace lockstep::comm::ipc
