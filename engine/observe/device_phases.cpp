#include "engine/observe/device_phases.h"

namespace lockstep {

void DevicePhases::start() {
  stream_.synchronize();
  const auto before = Timeline::Clock::now();
  start_.record(stream_.cuda());
  stream_.synchronize();
  started_ = before + (Timeline::Clock::now() - before) / 2;
}

void DevicePhases::finish() {
  stream_.synchronize();
  const auto host_time = [&](const cuda::Mark& mark) {
    const std::chrono::duration<double, std::micro> since(mark.microseconds_since(start_));
    return started_ + std::chrono::duration_cast<Timeline::Clock::duration>(since);
  };
  for (const Phase& phase : phases_) {
    timeline_.record({.lane = {.kind = TimelineLane::Kind::kDevice},
                      .name = phase.name,
                      .begin = host_time(phase.begin),
                      .end = host_time(phase.end)});
  }
  phases_.clear();
}

void DevicePhases::begin(std::string_view name) {
  if (depth_++ > 0) return;
  phases_.push_back({.name = name, .begin = {}, .end = {}});
  phases_.back().begin.record(stream_.cuda());
}

void DevicePhases::end() {
  if (--depth_ == 0) phases_.back().end.record(stream_.cuda());
}

}  // namespace lockstep
