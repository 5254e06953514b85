// Measures where the time of a gradient exchange goes.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#pragma GCC visibility push(default)
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

// Takes the times of a step. Thread safety: none.
class ExchangeClock {
 public:
  using Clock = BucketTimes::Clock;

  explicit ExchangeClock(size_t buckets) : step_{.buckets = std::vector<BucketTimes>(buckets)} {}

  void ready(size_t bucket) { step_.buckets[bucket].ready = Clock::now(); }
  void start(size_t bucket) { step_.buckets[bucket].start = Clock::now(); }
  void end(size_t bucket) { step_.buckets[bucket].end = Clock::now(); }

  // The exchange holds this thread up as long as this lives.
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

  // The step's times; the next step begins.
  ExchangeTimes take();

 private:
  ExchangeTimes step_;
};

}  // namespace lockstep::comm
#pragma GCC visibility pop
