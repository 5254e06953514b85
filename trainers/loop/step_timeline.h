// Records the steps that --trace asks for, over all ranks, in a timeline, and all steps in a flight
// recorder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/clock_offsets.h"
#include "core/autograd.h"
#include "core/function_ref.h"
#include "core/timeline.h"
#include "engine/step/step_observer.h"
#include "trainers/config/run_request.h"
#include "trainers/loop/device_phases.h"
#include "trainers/loop/training_parts.h"
#include "trainers/report/run_directory.h"
#include "trainers/timeline/layer_spans.h"

namespace lockstep::trainers {

// Without --trace, and without the ranks' recorder, it does nothing. Borrows the parts. Steps count
// from 1.
class StepTimeline {
 public:
  explicit StepTimeline(const TrainingParts& parts);

  Timeline* timeline() { return timeline_.get(); }

  // A collective call before the first traced step: the ranks compare their clocks.
  void begin_step(int64_t step);
  // A collective call after the last traced step: rank 0, which has a directory, writes the file.
  void end_step(int64_t step, RunDirectory* directory);
  // A collective call at the end of the training: writes the steps recorded so far.
  void end(RunDirectory* directory);

  // Runs `work` as a span of the host and, on CUDA, of the device.
  void in_phase(std::string_view name, FunctionRef<void()> work);
  // Returns the listener for a tape. It forwards to `next`, which may be null.
  TapeListener* listener(TapeListener* next);
  void begin_pass(StepObserver::Pass pass);
  void end_pass();

 private:
  void write(RunDirectory* directory);
  // Returns the last step that all ranks recorded completely.
  int64_t last_whole_step(const std::vector<Timeline::Span>& spans) const;
  void keep_steps_up_to(int64_t step, std::vector<Timeline::Span>& spans) const;
  void report(RunDirectory* directory, const std::vector<std::string>& parts) const;

  const TrainingParts& parts_;
  const std::optional<TracedSteps> wanted_;
  std::unique_ptr<Timeline> timeline_;            // only with --trace or a recorder
  std::unique_ptr<LayerSpans> layers_;            // only on the CPU
  std::optional<DevicePhases> phases_;            // only on CUDA, with --trace
  std::vector<comm::ClockOffset> clocks_before_;  // while steps are traced
  int64_t last_taken_ = 0;
  bool is_written_ = false;
};

}  // namespace lockstep::trainers
