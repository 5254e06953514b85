// Rejects calls that a communicator cannot serve: calls from two threads at once, and calls after
// an error.
#pragma once

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/fork_check.h"

namespace lockstep::comm {

// Each communicator has one. Thread safety: run() may be called from any thread.
class CallGuard {
 public:
  // Runs body(), one call of the communicator, and returns its result. The call may make others.
  // After a CommError the ranks are out of step, so every later call throws the same error at once.
  // Errors: UsageError while another thread is in a call, and in a forked child.
  template <class Body>
  decltype(auto) run(Body&& body) {
    fork_.expect_parent("a Communicator");
    const Turn turn(*this);
    if (failure_) throw CommError(*failure_);
    try {
      return std::forward<Body>(body)();
    } catch (const CommError& error) {
      fail(error);
      throw;
    }
  }

  void fail(const CommError& error);  // keeps the first one
  const std::optional<CommError>& failure() const { return failure_; }

 private:
  class Turn {
   public:
    explicit Turn(CallGuard& guard);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    CallGuard& guard_;
    bool is_outermost_ = true;
  };

  std::atomic<std::thread::id> caller_;  // of the call under way; no thread: none
  std::optional<CommError> failure_;
  const ForkCheck fork_;
};

}  // namespace lockstep::comm
