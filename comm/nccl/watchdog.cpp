#include "comm/nccl/watchdog.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace lockstep::comm::nccl {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr auto kDrain = std::chrono::seconds(10);  // for NCCL's kernels to see that they shall end

}  // namespace

Watchdog::Watchdog(Ranks& ranks, const std::vector<CUstream_st*>& streams)
    : Watch(streams), ranks_(ranks) {}

void Watchdog::track(const cuda::Event& done, std::string_view label, bool recorded) {
  auto known = std::ranges::find(collectives_, label, &Collective::label);
  if (known == collectives_.end()) {
    known = collectives_.insert(known, {.done = done, .label = std::string(label)});
  }
  known->recorded = recorded;
}

void Watchdog::look(std::chrono::steady_clock::duration waited) {
  if (ranks_.failure()) {  // it is on its way out, and something still waits
    if (waited >= kDrain) throw CommError(*ranks_.failure());
    return;
  }
  ranks_.check("the exchange of gradients");
  if (const std::vector<int> gone = ranks_.gone(); !gone.empty()) ranks_.lose(awaited(), gone);
  if (waited >= ranks_.deadline()) ranks_.give_up(awaited(), duration_cast<milliseconds>(waited));
}

std::string Watchdog::awaited() const {
  for (const Collective& collective : collectives_) {
    if (!collective.recorded && !collective.done.done()) return collective.label;
  }
  const auto recorded = std::ranges::count_if(collectives_, &Collective::recorded);
  return recorded > 0 ? fmt::format("a recorded step with {} collectives", recorded) : "the device";
}

}  // namespace lockstep::comm::nccl
