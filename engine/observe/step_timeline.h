// Records some steps over all ranks in a timeline, and all steps in a flight recorder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/clock_offsets.h"
#include "core/autograd.h"
#include "core/communicator.h"
#include "core/function_ref.h"
#include "core/stream.h"
#include "core/timeline.h"
#include "engine/observe/device_phases.h"
#include "engine/observe/layer_spans.h"
#include "engine/observe/traced_steps.h"
#include "engine/step/step_observer.h"
#include "nn/module.h"

namespace lockstep {

// The steps as a rank recorded them. The text of the spans is borrowed from the timeline.
struct RecordedSteps {
  TracedSteps wanted;
  int64_t last = 0;       // that all ranks recorded completely; below `wanted.first`: none
  bool has_more = false;  // steps were taken after `last`, for which there was no room
  Device device = Device::kCpu;
  std::vector<Timeline::Span> spans = {};             // as Timeline::spans() orders them
  std::vector<comm::ClockOffset> clocks_before = {};  // by rank; empty: no such step was taken
  std::vector<comm::ClockOffset> clocks_after = {};
};

// Does nothing where no steps are wanted and the ranks have no recorder. Steps count from 1.
class StepTimeline {
 public:
  // Enough for some 800 steps of a ResNet-20, in 9 MB; viewers become slow beyond that.
  static constexpr size_t kMaxSpans = size_t{1} << 17;

  // Borrows ranks, stream and model.
  StepTimeline(const std::optional<TracedSteps>& wanted,
               Communicator& ranks,
               Stream& stream,
               const nn::Module& model);

  Timeline* timeline() { return timeline_.get(); }

  // A collective call before the first wanted step: the ranks compare their clocks.
  void begin_step(int64_t step);
  // Returns what was recorded after the last wanted step, which makes it a collective call; nothing
  // after other steps.
  std::optional<RecordedSteps> end_step(int64_t step);
  // A collective call at the end of the training: returns the steps that end_step() has not
  // returned; nothing where it has, or where none are wanted.
  std::optional<RecordedSteps> end();

  // Runs `work` as a span of the host and, on CUDA, of the device.
  void in_phase(std::string_view name, FunctionRef<void()> work);
  // Returns the listener for a tape. It forwards to `next`, which may be null.
  TapeListener* listener(TapeListener* next);
  void begin_pass(StepObserver::Pass pass);
  void end_pass();

 private:
  RecordedSteps recorded(const TracedSteps& wanted);
  // Returns the last step that all ranks recorded completely.
  int64_t last_whole_step(const TracedSteps& wanted,
                          const std::vector<Timeline::Span>& spans) const;

  const std::optional<TracedSteps> wanted_;
  Communicator& ranks_;
  Stream& stream_;
  std::unique_ptr<Timeline> timeline_;            // only for wanted steps or a recorder
  std::unique_ptr<LayerSpans> layers_;            // only on the CPU
  std::optional<DevicePhases> phases_;            // only on CUDA, for wanted steps
  std::vector<comm::ClockOffset> clocks_before_;  // since the first wanted step
  int64_t last_taken_ = 0;
  bool is_returned_ = false;
};

}  // namespace lockstep
