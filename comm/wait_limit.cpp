#include "comm/wait_limit.h"

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "comm/seconds.h"

namespace lockstep::comm {
namespace {

std::chrono::milliseconds limit_of(std::chrono::milliseconds deadline, const SlowPart* part) {
  return part == nullptr ? deadline : std::max<std::chrono::milliseconds>(deadline, part->limit);
}

std::string who_is(std::span<const int> missing) {
  return missing.empty() ? "a rank is" : list_of_ranks(missing, "is", "are");
}

int lowest_that_waits(std::span<const int> missing) {
  int lowest = 0;
  while (std::ranges::find(missing, lowest) != missing.end()) ++lowest;
  return lowest;
}

}  // namespace

WaitLimit::WaitLimit(std::chrono::milliseconds deadline, const CallContext& context)
    : deadline_(deadline),
      part_(context.slow_part),
      warning_(context.warning),
      limit_(limit_of(deadline, part_)),
      warn_at_(Clock::time_point::max()) {
  if (part_ != nullptr) {
    warn_at_ = start_ + deadline;
  } else if (warning_ != nullptr) {
    warn_at_ = start_ + warning_->after;
  }
}

// Ranks that are all stopped for a while, and this one with them, have not waited for each other: a
// look counts for no more than two intervals.
void WaitLimit::look_at(FunctionRef<std::vector<int>()> missing) {
  constexpr std::chrono::milliseconds kInterval{200};
  if (part_ == nullptr || !part_->is_stopped) return;
  const Clock::time_point now = Clock::now();
  const Clock::duration passed = now - looked_at_;
  if (passed < kInterval) return;
  looked_at_ = now;
  const bool stopped = std::ranges::any_of(missing(), part_->is_stopped);
  stopped_for_ = stopped ? stopped_for_ + std::min<Clock::duration>(passed, 2 * kInterval)
                         : Clock::duration::zero();
}

bool WaitLimit::warning_is_due() {
  if (Clock::now() < warn_at_) return false;
  warn_at_ = Clock::time_point::max();
  return true;
}

void WaitLimit::warn(const Operation& operation, int rank, std::span<const int> missing) const {
  if (lowest_that_waits(missing) != rank) return;
  if (part_ == nullptr) {
    warning_->tell(
        fmt::format("rank {} has waited in {} for {} s: {} not there; it gives up after {} s",
                    rank,
                    to_string(operation),
                    seconds_of(warning_->after),
                    who_is(missing),
                    seconds_of(limit_)));
    return;
  }
  if (!part_->tell) return;
  part_->tell(fmt::format("{} still {}; the other ranks wait for {} s at most",
                          who_is(missing),
                          part_->doing,
                          seconds_of(limit_)));
}

CommError WaitLimit::error(const Operation& operation,
                           int rank,
                           std::span<const int> missing) const {
  if (part_ == nullptr || is_stopped()) return stall_error(operation, rank, missing, deadline_);
  return CommError(
      fmt::format("rank {} gave up waiting in {}", rank, to_string(operation)),
      fmt::format("{} still {} after {} s", who_is(missing), part_->doing, seconds_of(limit_)),
      "see whether its disk or file server answers",
      Remedy::kLongerWait);
}

}  // namespace lockstep::comm
