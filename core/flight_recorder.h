// Records what a rank does, always, in memory that outlives its process.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/flight_record.h"

namespace lockstep {

// An event costs a clock and eight or sixteen release stores, no system call and no lock. Text is
// copied. Once move_to() has been called, the memory has what the process did last, whatever ends
// it. Thread safety: parts, layers and calls are for the rank's own thread, loads for one thread a
// lane.
class FlightRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  // `host`: the header's. Errors: std::bad_alloc.
  FlightRecorder(int rank, int ranks, uint64_t host);
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;
  ~FlightRecorder();

  // The memory becomes this file's, of sizeof(FlightRecord) bytes, with what was recorded so far.
  // False, with errno set, where the system refuses; then nothing changes.
  bool move_to(int fd);

  const FlightRecord& record() const { return *record_; }

  // Parts enclose each other; a "step" is one too.
  void enter_part(std::string_view name, int64_t number, Clock::time_point now = Clock::now());
  void leave_part(Clock::time_point now = Clock::now());

  // A layer computes from now on. Empty: nobody knows which; the one before it was `before`.
  void enter_layer(std::string_view name, std::string_view before, Clock::time_point now);
  // A pass is over.
  void end_layers() { clear(record_->state.layer); }

  // Calls are numbered alike on all ranks. One that is entered again is the same one.
  void enter_call(int64_t number, std::string_view name);
  void leave_call(int64_t number);
  // The rank waits for peers in a call that it has entered. Where the wait fails, its end is never
  // recorded.
  void begin_wait(int64_t number, std::string_view name);
  void end_wait() { clear(record_->state.wait); }

  void enter_load(size_t lane, std::string_view name, int64_t number, Clock::time_point now);
  void leave_load(size_t lane, Clock::time_point now);

  // The rank ends with this exit code. `what` may be empty.
  void end(int code, std::string_view what);

 private:
  // With name, time and step.
  FlightEvent made(FlightEvent event, std::string_view name, Clock::time_point now) const;
  void stamp(FlightEvent& event, Clock::time_point now) const;
  // Numbers it and puts it into the ring.
  void add(FlightEvent& event);
  // Puts the end of what this event entered there.
  void add_end(FlightEvent event, Clock::time_point now);
  static void store(FlightEvent& slot, const FlightEvent& event);
  static void clear(FlightEvent& slot);

  FlightRecord* record_;
  std::atomic<uint64_t> sequence_ = 0;
  std::atomic<int32_t> step_ = 0;
  size_t parts_ = 0;                            // that it is in
  std::array<size_t, kFlightLoaders> loads_{};  // likewise, by thread
  std::vector<FlightEvent> open_calls_;         // in the order of their numbers
  int64_t last_call_ = 0;
};

}  // namespace lockstep
