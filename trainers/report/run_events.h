// The curves of a run for TensorBoard, under the tags that its readers expect.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainers/report/console.h"
#include "trainers/report/event_file.h"
#include "trainers/report/training_result.h"

namespace lockstep::trainers {

enum class EventTags : uint8_t {
  kOwn,     // train/loss, val/acc1, perf/img_s, ... by step, after each log line and evaluation
  kApex,    // tutorial 001's Loss/train, Top1/val, ... by epoch, from 1
  kTricks,  // tutorial 000's LR, and Loss and Acc with a folder each for train and valid, by epoch
};

// Writes to event files in `folder`. Thread safety: none.
class RunEvents {
 public:
  // How far the run is whose curves are continued: what is beyond is dropped and comes again.
  struct Position {
    int64_t steps = 0;
    int64_t epochs = 0;
  };

  // Errors: EnvironmentError.
  RunEvents(std::filesystem::path folder, EventTags tags, const Position& start);

  // Errors of each: EnvironmentError.
  void after_step(int64_t step, const StepMetrics& train);
  // `train` has the averages of that epoch; `step` steps were done since epoch 0.
  void after_epoch(int epoch, int64_t step, const StepMetrics& train, const Evaluation& val);

 private:
  void write(const std::string& folder, int64_t step, const std::vector<Scalar>& scalars);

  std::filesystem::path folder_;
  EventTags tags_;
  int64_t last_;  // as the files count: steps or epochs
  std::map<std::string, EventFile> files_;
};

// Removes the event files of a run in `folder`, and the folders that were made for them.
void remove_events(const std::filesystem::path& folder);

}  // namespace lockstep::trainers
