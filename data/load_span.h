// Records the work on training images in a loader's timeline.
#pragma once

#include "core/timeline.h"

namespace lockstep::data {

// Where this thread's work is recorded. A loader that has a timeline sets it.
struct LoadRecord {
  Timeline* timeline = nullptr;
  TimelineLane lane = {};
};

inline LoadRecord& load_record() {
  thread_local LoadRecord record;
  return record;
}

// Records a part of the work, from its construction to its destruction.
class LoadSpan : public TimelineSpan {
 public:
  explicit LoadSpan(const char* name, int64_t number = -1)
      : TimelineSpan(load_record().timeline, name, number, load_record().lane) {}
};

}  // namespace lockstep::data
