// Records a rank's calls, and its waits in them, in a flight recorder, which may be null.
#pragma once

#include <cstdint>
#include <exception>

#include "comm/operation.h"
#include "core/flight_recorder.h"

namespace lockstep::comm {

inline void record_entry(FlightRecorder* recorder, const Operation& operation) {
  if (recorder == nullptr) return;
  recorder->enter_call(static_cast<int64_t>(operation.sequence), short_name(operation));
}

inline void record_exit(FlightRecorder* recorder, const Operation& operation) {
  if (recorder != nullptr) recorder->leave_call(static_cast<int64_t>(operation.sequence));
}

// Records a wait for peers that lasts as long as this object. A wait that ends with an exception
// stays open: it shows where the rank was last.
class RecordedWait {
 public:
  RecordedWait(FlightRecorder* recorder, const Operation& operation) : recorder_(recorder) {
    if (recorder_ == nullptr) return;
    recorder_->begin_wait(static_cast<int64_t>(operation.sequence), short_name(operation));
  }
  RecordedWait(const RecordedWait&) = delete;
  RecordedWait& operator=(const RecordedWait&) = delete;
  ~RecordedWait() {
    if (recorder_ != nullptr && std::uncaught_exceptions() == 0) recorder_->end_wait();
  }

 private:
  FlightRecorder* const recorder_;
};

}  // namespace lockstep::comm
