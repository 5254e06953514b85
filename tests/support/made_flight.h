// Flight records of ranks that never ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/flight_recorder.h"
#include "core/timeline.h"
#include "engine/observe/rank_process.h"
#include "trainers/flight/read_flight.h"

namespace lockstep::testing {

// A rank's flight recorder in memory. seen() gives its record as a reader sees it 5 s from now.
class MadeFlight {
 public:
  MadeFlight(int rank, int ranks) : recorder_(rank, ranks, 7) {}

  FlightRecorder* operator->() { return &recorder_; }

  // Records a complete step with one sum; `call` is the sum's number.
  void take_step(int64_t step, int64_t call) {
    recorder_.enter_part(kStepSpan, step);
    recorder_.enter_call(call, "bucket 0 (8 tensors)");
    recorder_.leave_call(call);
    recorder_.leave_part();
  }
  // Records that the rank waits in the sum of this step.
  void wait_in_step(int64_t step, int64_t call) {
    recorder_.enter_part(kStepSpan, step);
    recorder_.enter_call(call, "bucket 0 (8 tensors)");
    recorder_.enter_part(kSumsSpan, -1);
    recorder_.begin_wait(call, "bucket 0 (8 tensors)");
  }

  trainers::RankFlight seen(char process = 'S', double after_s = 5) const {
    FlightRecord record = recorder_.record();
    record.header.process = process;
    record.header.copied_ns =
        std::chrono::nanoseconds(FlightRecorder::Clock::now().time_since_epoch()).count() +
        static_cast<int64_t>(after_s * 1e9);
    return trainers::flight_of(std::as_bytes(std::span(&record, 1)), "made");
  }

 private:
  FlightRecorder recorder_;
};

}  // namespace lockstep::testing
