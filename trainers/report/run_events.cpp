#include "trainers/report/run_events.h"

#include <system_error>
#include <utility>

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

// torch's add_scalars("Loss", {"train": ...}) writes the tag Loss in a folder Loss_train.
constexpr const char* kTricksFolders[] = {"Loss_train", "Loss_valid", "Acc_train", "Acc_valid"};

// The last step that a file may hold already.
int64_t last_of(EventTags tags, const RunEvents::Position& start) {
  switch (tags) {
    case EventTags::kOwn:
      return start.steps;
    case EventTags::kApex:
      return start.epochs;
    case EventTags::kTricks:
      break;
  }
  return start.epochs - 1;
}

std::vector<Scalar> apex_scalars(const StepMetrics& train, const Evaluation& val) {
  return {{"Loss/train", train.loss_avg},
          {"Loss/val", val.loss},
          {"Top1/train", train.acc1_avg},
          {"Top1/val", val.acc1()},
          {"Top5/train", train.acc5_avg},
          {"Top5/val", val.acc5()},
          {"Throughput/train", train.images_per_s_avg},
          {"Time/train", train.step_s_avg},
          {"Lr", train.lr}};
}

}  // namespace

RunEvents::RunEvents(fs::path folder, EventTags tags, const Position& start)
    : folder_(std::move(folder)), tags_(tags), last_(last_of(tags, start)) {}

void RunEvents::write(const std::string& folder, int64_t step, const std::vector<Scalar>& scalars) {
  files_.try_emplace(folder, folder_ / folder, last_).first->second.append(step, scalars);
}

void RunEvents::after_step(int64_t step, const StepMetrics& train) {
  if (tags_ != EventTags::kOwn) return;
  write("",
        step,
        {{"train/loss", train.loss},
         {"train/acc1", train.acc1},
         {"train/acc5", train.acc5},
         {"train/lr", train.lr},
         {"perf/img_s", train.images_per_s},
         {"perf/step_s", train.step_s},
         {"perf/data_s", train.data_s},
         {"perf/comm_exposed_s", train.comm_exposed_s},
         {"amp/scale", train.loss_scale}});
}

void RunEvents::after_epoch(int epoch,
                            int64_t step,
                            const StepMetrics& train,
                            const Evaluation& val) {
  switch (tags_) {
    case EventTags::kOwn:
      return write(
          "", step, {{"val/loss", val.loss}, {"val/acc1", val.acc1()}, {"val/acc5", val.acc5()}});
    case EventTags::kApex:
      return write("", epoch + 1, apex_scalars(train, val));
    case EventTags::kTricks:
      break;
  }
  write("", epoch, {{"LR", train.lr}});
  write("Loss_train", epoch, {{"Loss", train.loss_avg}});
  write("Loss_valid", epoch, {{"Loss", val.loss}});
  write("Acc_train", epoch, {{"Acc", train.acc1_avg / 100}});
  write("Acc_valid", epoch, {{"Acc", val.acc1() / 100}});
}

void remove_events(const fs::path& folder) {
  std::error_code error;
  for (fs::path file = event_file_in(folder); !file.empty() && !error;
       file = event_file_in(folder)) {
    fs::remove(file, error);
  }
  for (const char* const name : kTricksFolders) {
    if (event_file_in(folder / name).empty()) continue;
    remove_events(folder / name);
    fs::remove(folder / name, error);  // stays where something else is in it
  }
}

}  // namespace lockstep::trainers
