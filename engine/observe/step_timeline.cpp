#include "engine/observe/step_timeline.h"

#include <algorithm>
#include <utility>

#include "comm/gather.h"

namespace lockstep {
namespace {

void keep_steps_up_to(int64_t step, std::vector<Timeline::Span>& spans) {
  auto end = Timeline::Clock::time_point::min();
  for (const Timeline::Span& span : spans) {
    if (span.name == kStepSpan && span.number <= step) end = std::max(end, span.end);
  }
  std::erase_if(spans, [&](const Timeline::Span& span) { return span.end > end; });
}

}  // namespace

StepTimeline::StepTimeline(const std::optional<TracedSteps>& wanted,
                           Communicator& ranks,
                           Stream& stream,
                           const nn::Module& model)
    : wanted_(wanted), ranks_(ranks), stream_(stream) {
  if (!wanted_ && ranks_.recorder() == nullptr) return;
  timeline_ = std::make_unique<Timeline>(wanted_ ? kMaxSpans : 0, ranks_.recorder());
  if (stream_.device() == Device::kCpu) {
    layers_ = std::make_unique<LayerSpans>(*timeline_, model);
  } else if (wanted_) {
    phases_.emplace(*timeline_, stream_);
  }
}

void StepTimeline::begin_step(int64_t step) {
  if (!wanted_ || is_returned_ || timeline_->is_on()) return;
  if (step < wanted_->first || step > wanted_->last) return;
  clocks_before_ = comm::measure_clock_offsets(ranks_);
  if (phases_) phases_->start();
  timeline_->start();
}

std::optional<RecordedSteps> StepTimeline::end_step(int64_t step) {
  if (!wanted_ || !timeline_->is_on()) return std::nullopt;
  last_taken_ = step;
  if (step != wanted_->last) return std::nullopt;
  return recorded(*wanted_);
}

std::optional<RecordedSteps> StepTimeline::end() {
  if (!wanted_ || is_returned_) return std::nullopt;
  if (timeline_->is_on()) return recorded(*wanted_);
  return RecordedSteps{.wanted = *wanted_};
}

TapeListener* StepTimeline::listener(TapeListener* next) {
  return layers_ ? layers_->listener(next) : next;
}

void StepTimeline::begin_pass(StepObserver::Pass pass) {
  if (layers_) layers_->begin_pass(pass);
}

void StepTimeline::end_pass() {
  if (layers_) layers_->end_pass();
}

void StepTimeline::in_phase(std::string_view name, FunctionRef<void()> work) {
  const TimelineSpan span(timeline_.get(), name);
  const bool is_timed = phases_ && timeline_->is_on();
  if (is_timed) phases_->begin(name);
  work();
  if (is_timed) phases_->end();
}

RecordedSteps StepTimeline::recorded(const TracedSteps& wanted) {
  if (phases_) phases_->finish();
  timeline_->stop();
  is_returned_ = true;
  RecordedSteps steps{.wanted = wanted,
                      .device = stream_.device(),
                      .spans = timeline_->spans(),
                      .clocks_before = std::move(clocks_before_),
                      .clocks_after = comm::measure_clock_offsets(ranks_)};
  steps.last = last_whole_step(wanted, steps.spans);
  steps.has_more = steps.last != last_taken_;
  if (steps.has_more) keep_steps_up_to(steps.last, steps.spans);
  return steps;
}

int64_t StepTimeline::last_whole_step(const TracedSteps& wanted,
                                      const std::vector<Timeline::Span>& spans) const {
  int64_t last = last_taken_;
  if (const auto lost = timeline_->first_lost()) {
    last = wanted.first - 1;
    for (const Timeline::Span& span : spans) {
      if (span.name == kStepSpan && span.end <= *lost) last = std::max(last, span.number);
    }
  }
  return std::ranges::min(comm::gather_value(ranks_, last));
}

}  // namespace lockstep
