#include "core/timeline.h"

#include <algorithm>
#include <tuple>

#include "core/flight_recorder.h"

namespace lockstep {

void Timeline::record(const Span& span) {
  if (!is_on()) return;
  const size_t place = used_.fetch_add(1, std::memory_order_relaxed);
  if (place >= capacity_) {
    const int64_t begin = span.begin.time_since_epoch().count();
    int64_t first = first_lost_.load(std::memory_order_relaxed);
    while (begin < first && !first_lost_.compare_exchange_weak(first, begin)) {
    }
    return;
  }
  slots_[place].span = span;
  slots_[place].is_written.store(true, std::memory_order_release);
}

void Timeline::enter(const Span& span) {
  if (recorder_ == nullptr) return;
  if (span.lane.kind == TimelineLane::Kind::kLoader) {
    recorder_->enter_load(static_cast<size_t>(span.lane.index), span.name, span.number, span.begin);
  } else {
    recorder_->enter_part(span.name, span.number, span.begin);
  }
}

void Timeline::leave(const Span& span) {
  if (recorder_ == nullptr) return;
  if (span.lane.kind == TimelineLane::Kind::kLoader) {
    recorder_->leave_load(static_cast<size_t>(span.lane.index), span.end);
  } else {
    recorder_->leave_part(span.end);
  }
}

std::vector<Timeline::Span> Timeline::spans() const {
  std::vector<Span> spans;
  const size_t used = std::min(used_.load(std::memory_order_relaxed), capacity_);
  for (size_t i = 0; i < used; ++i) {
    if (slots_[i].is_written.load(std::memory_order_acquire)) spans.push_back(slots_[i].span);
  }
  std::ranges::stable_sort(spans, std::less(), [](const Span& span) {
    return std::tuple(span.begin, -span.end.time_since_epoch());
  });
  return spans;
}

std::optional<Timeline::Clock::time_point> Timeline::first_lost() const {
  const int64_t first = first_lost_.load(std::memory_order_relaxed);
  if (first == kNone) return std::nullopt;
  return Clock::time_point(Clock::duration(first));
}

}  // namespace lockstep
