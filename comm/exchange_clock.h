// Measures where the time of a gradient exchange goes.
#pragma once

#include <chrono>
#include <span>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep {
class Timeline;
}

namespace lockstep::comm {

// Times of a bucket's events in the last step.
struct BucketTimes {
  using Clock = std::chrono::steady_clock;
  Clock::time_point ready;  // its last gradient was there
  Clock::time_point start;  // its exchange was started
  Clock::time_point end;    // its sum was seen to be there
};

// The last step's exchange.
struct ExchangeTimes {
  double exposed_s = 0;  // backward() and finish() were held up by it
  double hidden_s = 0;   // it was under way beside other work of this rank
  std::vector<BucketTimes> buckets;
};

// Seconds for which at least one bucket was under way. Requires: buckets in the order of their
// starts.
double seconds_under_way(std::span<const BucketTimes> buckets);

// Measures the exchange of a step and records it in a timeline where there is one: each bucket, and
// each wait in which the exchange held the step up. Thread safety: none.
class ExchangeClock {
 public:
  using Clock = BucketTimes::Clock;

  // The timeline may be null.
  explicit ExchangeClock(size_t buckets, Timeline* timeline = nullptr)
      : step_{.buckets = std::vector<BucketTimes>(buckets)},
        last_gradients_(buckets),
        timeline_(timeline) {}

  // `last_gradient`: the parameter that it waited for; the text outlives the timeline.
  void ready(size_t bucket, std::string_view last_gradient = {}) {
    step_.buckets[bucket].ready = Clock::now();
    last_gradients_[bucket] = last_gradient;
  }
  void start(size_t bucket) { step_.buckets[bucket].start = Clock::now(); }
  void end(size_t bucket);

  // While this object lives, the calling thread waits for the exchange.
  class Exposed {
   public:
    explicit Exposed(ExchangeClock& clock) : clock_(clock), since_(Clock::now()) {}
    Exposed(const Exposed&) = delete;
    Exposed& operator=(const Exposed&) = delete;
    ~Exposed();

   private:
    ExchangeClock& clock_;
    const Clock::time_point since_;
  };

  // Returns the step's times and begins the next step.
  ExchangeTimes take();

 private:
  ExchangeTimes step_;
  std::vector<std::string_view> last_gradients_;  // of buckets
  Timeline* timeline_;
};

}  // namespace lockstep::comm
#pragma GCC visibility pop
