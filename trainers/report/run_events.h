// The curves of a run for TensorBoard, under the tags that its readers expect.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/function_ref.h"
#include "engine/results/training_result.h"
#include "trainers/report/console.h"
#include "trainers/report/event_file.h"
#include "trainers/report/run_record.h"

namespace lockstep::trainers {

enum class EventTags : uint8_t {
  kOwn,     // train/loss, val/acc1, perf/img_s, ... by step, after each log line and evaluation
  kApex,    // tutorial 001's Loss/train, Top1/val, ... by epoch, from 1
  kTricks,  // tutorial 000's LR, and Loss and Acc with a folder each for train and valid, by epoch
};

// Shown beside the curves, before the first step.
struct EventOpening {
  struct Text {
    std::string tag;
    std::string markdown;
  };
  std::vector<HParam> hparams = {};
  std::vector<Text> texts = {};
  std::optional<Picture> images = {};  // that are trained on first
};

// A parameter or its gradient.
struct NamedValues {
  std::string name;  // "weight/layer1.0.weight"
  std::span<const float> values;
};

// Writes to event files in `folder`. Tutorials' files hold their scripts' tags alone; all else goes
// to a file in the folder `details` there. Thread safety: none.
class RunEvents {
 public:
  // How far the run is whose curves are continued. Later events are dropped and written again.
  struct Position {
    int64_t steps = 0;
    int64_t epochs = 0;
    bool evaluates = false;  // begins with the evaluation of that step, once more
  };

  // Errors: EnvironmentError.
  RunEvents(std::filesystem::path folder, EventTags tags, const Position& start);

  // Does nothing in a run that goes on and has written it already; `opening` is not called then.
  void begin(FunctionRef<EventOpening()> opening);
  void end(int64_t step);  // of the whole run
  void histograms(int64_t step, std::span<const NamedValues> tensors);
  void after_step(int64_t step, const StepMetrics& train);
  // `train` has the averages of that epoch; `step` steps were done since epoch 0.
  void after_epoch(int epoch, int64_t step, const StepMetrics& train, const Evaluation& val);

 private:
  using Scalars = std::vector<std::pair<std::string_view, double>>;
  void write(const std::string& folder, int64_t step, const Scalars& scalars);
  EventFile& file(const std::string& folder);
  EventFile& details() { return file(tags_ == EventTags::kOwn ? "" : kDetails); }

  static constexpr const char* kDetails = "details";

  std::filesystem::path folder_;
  EventTags tags_;
  Position start_;
  std::map<std::string, EventFile> files_;
};

// Removes the event files of a run in `folder`, and the folders made for them.
void remove_events(const std::filesystem::path& folder);

// Returns the settings that --help shows or that were set as columns of the table of runs, and the
// command line and all flags as texts.
EventOpening event_opening(const RunRecord& record);

}  // namespace lockstep::trainers
