#include "trainers/loop/step_timeline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "comm/gather.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "trainers/config/run_files.h"
#include "trainers/report/errors.h"
#include "trainers/timeline/trace_file.h"

namespace lockstep::trainers {
namespace {

// Enough for some 800 steps of a ResNet-20, in 9 MB per rank; viewers become slow beyond that.
constexpr size_t kMaxSpans = size_t{1} << 17;

}  // namespace

StepTimeline::StepTimeline(const TrainingParts& parts)
    : parts_(parts), wanted_(parts_.replay ? std::nullopt : parts_.run.request.trace) {
  if (!wanted_ && parts_.ranks.recorder() == nullptr) return;
  timeline_ = std::make_unique<Timeline>(wanted_ ? kMaxSpans : 0, parts_.ranks.recorder());
  if (parts_.stream.device() == Device::kCpu) {
    layers_ = std::make_unique<LayerSpans>(*timeline_, parts_.model);
  } else if (wanted_) {
    phases_.emplace(*timeline_, parts_.stream);
  }
}

void StepTimeline::begin_step(int64_t step) {
  if (!wanted_ || is_written_ || timeline_->is_on()) return;
  if (step < wanted_->first || step > wanted_->last) return;
  clocks_before_ = comm::measure_clock_offsets(parts_.ranks);
  if (phases_) phases_->start();
  timeline_->start();
}

void StepTimeline::end_step(int64_t step, RunDirectory* directory) {
  if (!wanted_ || !timeline_->is_on()) return;
  last_taken_ = step;
  if (step == wanted_->last) write(directory);
}

void StepTimeline::end(RunDirectory* directory) {
  if (!wanted_ || is_written_) return;
  if (timeline_->is_on()) return write(directory);
  parts_.console.warn(fmt::format("no trace: the run took none of the steps {} to {} of --trace",
                                  wanted_->first,
                                  wanted_->last));
}

TapeListener* StepTimeline::listener(TapeListener* next) {
  return layers_ ? layers_->listener(next) : next;
}

void StepTimeline::begin_pass(StepObserver::Pass pass) {
  if (!layers_) return;
  layers_->begin_pass(pass == StepObserver::Pass::kForward ? LayerSpans::Pass::kForward
                                                           : LayerSpans::Pass::kBackward);
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

void StepTimeline::write(RunDirectory* directory) {
  if (phases_) phases_->finish();
  timeline_->stop();
  is_written_ = true;
  const std::vector<comm::ClockOffset> after = comm::measure_clock_offsets(parts_.ranks);
  std::vector<Timeline::Span> spans = timeline_->spans();
  const int64_t last = last_whole_step(spans);
  keep_steps_up_to(last, spans);
  const auto rank = static_cast<size_t>(parts_.ranks.rank());
  const std::string mine = trace_events({.rank = parts_.ranks.rank(),
                                         .spans = spans,
                                         .clock = {clocks_before_[rank], after[rank]},
                                         .origin = clocks_before_.front().at});
  std::vector<std::string> parts = comm::collect_texts(parts_.ranks, mine);
  on_rank_0(parts_.ranks, "writing the trace", [&] {
    if (directory == nullptr) return;
    parts.insert(parts.begin(),
                 trace_header({.first_step = wanted_->first,
                               .last_step = last,
                               .device = name_of(parts_.stream.device()),
                               .clocks_before = clocks_before_,
                               .clocks_after = after}));
    report(directory, parts);
  });
  if (directory == nullptr || last == last_taken_) return;
  parts_.console.warn(fmt::format(
      "the trace ends after step {}: there is room for {} spans per rank; trace fewer steps",
      last,
      kMaxSpans));
}

int64_t StepTimeline::last_whole_step(const std::vector<Timeline::Span>& spans) const {
  int64_t last = last_taken_;
  const auto lost = timeline_->first_lost();
  if (lost && wanted_) {
    last = wanted_->first - 1;
    for (const Timeline::Span& span : spans) {
      if (span.name == kStepSpan && span.end <= *lost) last = std::max(last, span.number);
    }
  }
  return std::ranges::min(comm::gather_value(parts_.ranks, last));
}

void StepTimeline::keep_steps_up_to(int64_t step, std::vector<Timeline::Span>& spans) const {
  if (step == last_taken_) return;
  auto end = Timeline::Clock::time_point::min();
  for (const Timeline::Span& span : spans) {
    if (span.name == kStepSpan && span.number <= step) end = std::max(end, span.end);
  }
  std::erase_if(spans, [&](const Timeline::Span& span) { return span.end > end; });
}

void StepTimeline::report(RunDirectory* directory, const std::vector<std::string>& parts) const {
  std::vector<std::span<const std::byte>> pieces;
  for (size_t i = 0; i < parts.size(); ++i) {
    constexpr std::string_view kBetween = ",\n";
    if (i > 1) pieces.push_back(std::as_bytes(std::span(kBetween)));
    pieces.push_back(std::as_bytes(std::span(parts[i])));
  }
  pieces.push_back(std::as_bytes(std::span(kTraceEnd)));
  try {
    write_file_atomically(directory->folder(), kTraceFile, pieces);
  } catch (const EnvironmentError& error) {
    parts_.console.warn(fmt::format("no trace: {}: {}", error.what(), error.why()));
    return;
  }
  parts_.console.info(fmt::format("trace {}", (directory->path() / kTraceFile).string()));
}

}  // namespace lockstep::trainers
