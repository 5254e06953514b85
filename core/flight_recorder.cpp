#include "core/flight_recorder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

#include "core/timeline.h"

namespace lockstep {
namespace {

using Words = std::array<uint64_t, sizeof(FlightEvent) / sizeof(uint64_t)>;

void* map_record(void* place, int flags, int fd) {
  return mmap(place, sizeof(FlightRecord), PROT_READ | PROT_WRITE, flags, fd, 0);
}

int64_t wall_minus_steady() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  const auto steady = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(wall - steady).count();
}

}  // namespace

FlightRecorder::FlightRecorder(int rank, int ranks, uint64_t host) {
  void* const memory = map_record(nullptr, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  record_ = new (memory) FlightRecord;
  record_->header.rank = rank;
  record_->header.ranks = ranks;
  record_->header.pid = getpid();
  record_->header.host = host;
  record_->header.wall_minus_steady_ns = wall_minus_steady();
  open_calls_.reserve(64);  // more are not under way
}

FlightRecorder::~FlightRecorder() {
  munmap(record_, sizeof(FlightRecord));
}

// At the same address: other threads may be recording.
bool FlightRecorder::move_to(int fd) {
  const auto* bytes = reinterpret_cast<const char*>(record_);
  if (pwrite(fd, bytes, sizeof(FlightRecord), 0) != ssize_t{sizeof(FlightRecord)}) return false;
  return map_record(record_, MAP_SHARED | MAP_FIXED, fd) != MAP_FAILED;
}

void FlightRecorder::enter_part(std::string_view name, int64_t number, Clock::time_point now) {
  if (name == kStepSpan) step_.store(static_cast<int32_t>(number), std::memory_order_relaxed);
  FlightEvent event = make_event({.number = number, .kind = FlightEvent::Kind::kPart}, name, now);
  add(event);
  if (parts_ < kFlightParts) store(record_->state.parts[parts_], event);
  ++parts_;
}

void FlightRecorder::leave_part(Clock::time_point now) {
  if (parts_ == 0) return;
  --parts_;
  if (parts_ >= kFlightParts) return;
  FlightEvent& slot = record_->state.parts[parts_];
  add_end(slot, now);
  clear(slot);
}

void FlightRecorder::enter_layer(std::string_view name,
                                 std::string_view before,
                                 Clock::time_point now) {
  const bool is_known = !name.empty();
  FlightEvent event =
      make_event({.kind = FlightEvent::Kind::kLayer,
                  .phase = is_known ? FlightEvent::Phase::kEntered : FlightEvent::Phase::kLeft},
                 is_known ? name : before,
                 now);
  add(event);
  store(record_->state.layer, event);
}

void FlightRecorder::enter_call(int64_t number, std::string_view name) {
  if (number == last_call_ && !open_calls_.empty()) return;
  const bool is_new = number != last_call_;
  FlightEvent event =
      make_event({.number = number, .kind = FlightEvent::Kind::kCall}, name, Clock::now());
  last_call_ = number;
  if (is_new) add(event);
  store(record_->state.last_call, event);
  open_calls_.push_back(event);
  if (open_calls_.size() == 1) store(record_->state.open_call, event);
}

void FlightRecorder::leave_call(int64_t number) {
  const auto open = std::ranges::find(open_calls_, number, &FlightEvent::number);
  if (open == open_calls_.end()) return;
  add_end(*open, Clock::now());
  open_calls_.erase(open);
  if (open_calls_.empty()) {
    clear(record_->state.open_call);
  } else {
    store(record_->state.open_call, open_calls_.front());
  }
}

void FlightRecorder::begin_wait(int64_t number, std::string_view name) {
  store(record_->state.wait,
        make_event({.number = number, .kind = FlightEvent::Kind::kCall}, name, Clock::now()));
}

void FlightRecorder::enter_load(size_t lane,
                                std::string_view name,
                                int64_t number,
                                Clock::time_point now) {
  FlightEvent event = make_event(
      {.number = number, .kind = FlightEvent::Kind::kLoad, .lane = static_cast<uint16_t>(lane)},
      name,
      now);
  add(event);
  if (lane >= kFlightLoaders) return;
  if (loads_[lane] < kFlightLoads) store(record_->state.loads[lane][loads_[lane]], event);
  ++loads_[lane];
}

void FlightRecorder::leave_load(size_t lane, Clock::time_point now) {
  if (lane >= kFlightLoaders || loads_[lane] == 0) return;
  if (--loads_[lane] >= kFlightLoads) return;
  FlightEvent& slot = record_->state.loads[lane][loads_[lane]];
  add_end(slot, now);
  clear(slot);
}

void FlightRecorder::end(int code, std::string_view what) {
  FlightEvent event =
      make_event({.number = code, .kind = FlightEvent::Kind::kEnd}, what, Clock::now());
  add(event);
  store(record_->state.end, event);
}

FlightEvent FlightRecorder::make_event(FlightEvent event,
                                       std::string_view name,
                                       Clock::time_point now) const {
  std::ranges::copy(name.substr(0, event.name.size()), event.name.begin());
  stamp(event, now);
  return event;
}

void FlightRecorder::stamp(FlightEvent& event, Clock::time_point now) const {
  event.sequence = sequence_.load(std::memory_order_relaxed) + 1;
  event.time_ns = std::chrono::nanoseconds(now.time_since_epoch()).count();
  event.step = step_.load(std::memory_order_relaxed);
}

void FlightRecorder::add(FlightEvent& event) {
  event.sequence = sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
  store(record_->events[(event.sequence - 1) % kFlightEvents], event);
}

void FlightRecorder::add_end(FlightEvent event, Clock::time_point now) {
  event.phase = FlightEvent::Phase::kLeft;
  stamp(event, now);
  add(event);
}

// The sequence is 0 while the rest is written, so that a concurrent reader sees no event.
void FlightRecorder::store(FlightEvent& slot, const FlightEvent& event) {
  const auto words = std::bit_cast<Words>(event);
  auto* const target = reinterpret_cast<uint64_t*>(&slot);
  std::atomic_ref(target[0]).store(0, std::memory_order_relaxed);
  for (size_t i = 1; i < words.size(); ++i) {  // no word is seen before the 0
    std::atomic_ref(target[i]).store(words[i], std::memory_order_release);
  }
  std::atomic_ref(target[0]).store(words[0], std::memory_order_release);
}

void FlightRecorder::clear(FlightEvent& slot) {
  auto* const target = reinterpret_cast<uint64_t*>(&slot);
  std::atomic_ref(target[0]).store(0, std::memory_order_release);
}

}  // namespace lockstep
