#include "comm/call_guard.h"

namespace lockstep::comm {

CallGuard::Turn::Turn(CallGuard& guard) : guard_(guard) {
  const std::thread::id self = std::this_thread::get_id();
  std::thread::id caller;
  if (guard.caller_.compare_exchange_strong(caller, self)) return;
  if (caller != self) {
    throw UsageError("two threads call one communicator at the same time",
                     "all ranks must make its calls in the same order, which threads do not keep",
                     "one thread that makes all calls, or a communicator for each thread");
  }
  is_outermost_ = false;
}

CallGuard::Turn::~Turn() {
  if (is_outermost_) guard_.caller_ = std::thread::id();
}

void CallGuard::fail(const CommError& error) {
  if (!failure_) failure_ = error;
}

}  // namespace lockstep::comm
