// Spans of a rank's time: what its threads did and when, for a picture of its steps.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep {

class FlightRecorder;

// Spans of one lane may nest, but must not overlap otherwise.
struct TimelineLane {
  enum class Kind : uint8_t {
    kStep,    // the thread that trains
    kLoader,  // a thread that makes batches
    kBucket,  // the exchange of a bucket of gradients
    kDevice,  // what a GPU does
  };
  Kind kind = Kind::kStep;
  int32_t index = 0;  // among the lanes of its kind

  auto operator<=>(const TimelineLane& other) const = default;
};

// Names of spans that code which reads a timeline looks for.
inline constexpr const char* kStepSpan = "step";
inline constexpr const char* kLoaderWaitSpan = "wait for images";
inline constexpr const char* kForwardSpan = "forward";
inline constexpr const char* kBackwardSpan = "backward";
inline constexpr const char* kExchangeSpan = "exchange";  // the step waits for it
inline constexpr const char* kSumsSpan = "wait for sums";
inline constexpr const char* kUpdateSpan = "optimizer";
inline constexpr const char* kGraphSpan =
    "graph";  // forward to optimizer, given to a GPU in one call
inline constexpr const char* kBucketSpan = "bucket";  // from its last gradient to its sum

// Any thread may record without a lock, into memory that is allocated at construction, so recording
// costs little time and no further memory. Text is not copied and must outlive the timeline. The
// flight recorder, if any, is told of each span when it begins and when it ends, even while the
// timeline is off.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;

  struct Span {
    TimelineLane lane = {};
    std::string_view name = {};
    std::string_view detail = {};
    int64_t number = -1;  // number of the step, batch or bucket; -1: none
    Clock::time_point begin = {};
    Clock::time_point end = {};
  };

  // Allocates memory for `capacity` spans; later ones are lost. The recorder may be null.
  explicit Timeline(size_t capacity, FlightRecorder* recorder = nullptr)
      : recorder_(recorder),
        capacity_(capacity),
        // NOLINTNEXTLINE(modernize-avoid-c-arrays): atomics cannot be moved
        slots_(std::make_unique<Slot[]>(capacity)) {}
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;
  ~Timeline() = default;

  // Spans are kept only between start() and stop().
  void start() { on_.store(true, std::memory_order_release); }
  void stop() { on_.store(false, std::memory_order_release); }
  bool is_on() const { return on_.load(std::memory_order_acquire); }

  void record(const Span& span);

  FlightRecorder* recorder() const { return recorder_; }
  // Tell only the flight recorder that a span begins or ends.
  void enter(const Span& span);
  void leave(const Span& span);

  // In order of their begin; of two that begin together, the longer one comes first.
  std::vector<Span> spans() const;
  // The time when the first lost span began; nothing when none was lost.
  std::optional<Clock::time_point> first_lost() const;

 private:
  struct Slot {
    std::atomic<bool> is_written = false;
    Span span;
  };
  static constexpr int64_t kNone = INT64_MAX;

  FlightRecorder* const recorder_;
  const size_t capacity_;
  const std::unique_ptr<Slot[]> slots_;  // NOLINT(modernize-avoid-c-arrays)
  std::atomic<bool> on_ = false;
  std::atomic<size_t> used_ = 0;
  std::atomic<int64_t> first_lost_ = kNone;  // in ticks of the clock
};

// Records a span from its construction to its destruction. If `timeline` is null, or is off and has
// no recorder, nothing is recorded and no clock is read. When an exception ends the span, the
// flight recorder is not told, so that it shows where the rank failed.
class TimelineSpan {
 public:
  TimelineSpan(Timeline* timeline,
               std::string_view name,
               int64_t number = -1,
               TimelineLane lane = {})
      : is_kept_(timeline != nullptr && timeline->is_on()),
        timeline_(is_kept_ || (timeline != nullptr && timeline->recorder() != nullptr) ? timeline
                                                                                       : nullptr) {
    if (timeline_ == nullptr) return;
    span_ = {.lane = lane, .name = name, .number = number, .begin = Timeline::Clock::now()};
    timeline_->enter(span_);
  }
  TimelineSpan(const TimelineSpan&) = delete;
  TimelineSpan& operator=(const TimelineSpan&) = delete;
  ~TimelineSpan() {
    if (timeline_ == nullptr) return;
    span_.end = Timeline::Clock::now();
    if (std::uncaught_exceptions() == 0) timeline_->leave(span_);
    if (is_kept_) timeline_->record(span_);
  }

 private:
  const bool is_kept_;
  Timeline* const timeline_;
  Timeline::Span span_;
};

}  // namespace lockstep
