// Records what a rank does, in every run, in memory that outlives the process.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/flight_record.h"

namespace lockstep {

// An event costs a clock reading and eight or sixteen release stores, without a system call or a
// lock. Text is copied. After move_to() the memory shows what the process did last, however it
// ended. Thread safety: parts, layers and calls are recorded by the rank's main thread, the loads
// of a lane by one thread.
class FlightRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  // `host`: FlightHeader::host. Errors: std::bad_alloc.
  FlightRecorder(int rank, int ranks, uint64_t host);
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;
  ~FlightRecorder();

  // Moves the memory into this file, of sizeof(FlightRecord) bytes, with what was recorded so far.
  // Returns false, with errno set, when a system call fails; the recorder then goes on as before.
  bool move_to(int fd);

  const FlightRecord& record() const { return *record_; }

  // Parts nest; a "step" is one of them.
  void enter_part(std::string_view name, int64_t number, Clock::time_point now = Clock::now());
  void leave_part(Clock::time_point now = Clock::now());

  // The layer `name` begins to compute. If `name` is empty the layer is unknown, and `before` names
  // the one before it.
  void enter_layer(std::string_view name, std::string_view before, Clock::time_point now);
  // A forward or backward pass is over.
  void end_layers() { clear(record_->state.layer); }

  // A call has the same number on all ranks. Entering a number again means the same call.
  void enter_call(int64_t number, std::string_view name);
  void leave_call(int64_t number);
  // The rank waits for peers in a call that it has entered. If the wait fails, its end is not
  // recorded.
  void begin_wait(int64_t number, std::string_view name);
  void end_wait() { clear(record_->state.wait); }

  void enter_load(size_t lane, std::string_view name, int64_t number, Clock::time_point now);
  void leave_load(size_t lane, Clock::time_point now);

  // The rank ends with this exit code. `what` may be empty.
  void end(int code, std::string_view what);

 private:
  // Returns the event with its name, time and step.
  FlightEvent make_event(FlightEvent event, std::string_view name, Clock::time_point now) const;
  void stamp(FlightEvent& event, Clock::time_point now) const;
  // Assigns the next number and stores the event in the ring.
  void add(FlightEvent& event);
  // Stores the end of what `event` entered in the ring.
  void add_end(FlightEvent event, Clock::time_point now);
  static void store(FlightEvent& slot, const FlightEvent& event);
  static void clear(FlightEvent& slot);

  FlightRecord* record_;
  std::atomic<uint64_t> sequence_ = 0;
  std::atomic<int32_t> step_ = 0;
  size_t parts_ = 0;                            // present depth of nested parts
  std::array<size_t, kFlightLoaders> loads_{};  // the same for loads, by thread
  std::vector<FlightEvent> open_calls_;         // in the order of their numbers
  int64_t last_call_ = 0;
};

}  // namespace lockstep
