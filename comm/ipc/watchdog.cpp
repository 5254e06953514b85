#include "comm/ipc/watchdog.h"

#include <algorithm>

#include <fmt/core.h>

#include "comm/operation.h"
#include "comm/seconds.h"

namespace lockstep::comm::ipc {
namespace {

constexpr auto kDrain = std::chrono::seconds(5);  // after a failure: for what needs no lost rank

}  // namespace

void Watchdog::track(const cuda::InterprocessEvent& done, const std::string& label) {
  if (std::ranges::find(sums_, label, &Sum::label) == sums_.end()) sums_.push_back({done, label});
}

void Watchdog::guard(FunctionRef<void()> calls) {
  try {
    calls();
  } catch (const CommError& error) {
    failure_ = error;
    throw;
  }
}

void Watchdog::look(std::chrono::steady_clock::duration waited) {
  const std::vector<int> gone = peers_.gone();
  const auto drain = std::min<std::chrono::milliseconds>(kDrain, deadline_);
  if (failure_ && (!gone.empty() || waited >= drain)) throw CommError(*failure_);
  guard([&] {
    if (!gone.empty()) throw lost_peer_error(awaited(), peers_.rank(), gone);
    if (waited < deadline_) return;
    throw CommError(
        fmt::format("rank {} gave up waiting for {}", peers_.rank(), awaited()),
        fmt::format("nothing moved on the GPU for {} s; it does not say whose part is missing",
                    seconds_of(deadline_)),
        "see which rank is stopped, out of memory or only slow",
        Remedy::kLongerWait);
  });
}

std::string Watchdog::awaited() const {
  for (const Sum& sum : sums_) {
    if (!sum.done.done()) return "the sum of " + sum.label;
  }
  return "the device";
}

}  // namespace lockstep::comm::ipc
