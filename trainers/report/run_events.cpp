#include "trainers/report/run_events.h"

#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "core/words.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

// torch's add_scalars("Loss", {"train": ...}) writes the tag Loss in a folder Loss_train.
constexpr const char* kFolders[] = {
    "Loss_train", "Loss_valid", "Acc_train", "Acc_valid", "details"};

constexpr std::string_view kEvaluationTag = "val/loss";

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

using Scalars = std::vector<std::pair<std::string_view, double>>;

Scalars apex_scalars(const StepMetrics& train, const Evaluation& val) {
  Scalars scalars = {{"Loss/train", train.loss_avg},
                     {"Loss/val", val.loss},
                     {"Top1/train", train.acc1_avg},
                     {"Top1/val", val.acc1()},
                     {"Top5/train", train.acc5_avg},
                     {"Top5/val", val.acc5()},
                     {"Lr", train.lr}};
  if (train.step_s_avg > 0) {  // else an earlier process took the steps
    scalars.emplace_back("Throughput/train", train.images_per_s_avg);
    scalars.emplace_back("Time/train", train.step_s_avg);
  }
  return scalars;
}

}  // namespace

RunEvents::RunEvents(fs::path folder, EventTags tags, const Position& start)
    : folder_(std::move(folder)), tags_(tags), start_(start) {}

EventFile& RunEvents::file(const std::string& folder) {
  const int64_t last = folder == kDetails ? start_.steps : last_of(tags_, start_);
  const std::string_view again = start_.evaluates ? kEvaluationTag : std::string_view();
  return files_.try_emplace(folder, folder_ / folder, last, again).first->second;
}

void RunEvents::write(const std::string& folder, int64_t step, const Scalars& scalars) {
  std::vector<std::string> values;
  for (const auto& [tag, value] : scalars) values.push_back(scalar_value(tag, value));
  file(folder).append(step, values);
}

void RunEvents::begin(FunctionRef<EventOpening()> opening) {
  if (!details().is_new()) return;
  const EventOpening content = opening();
  std::vector<std::string> values = {
      session_start_value(content.hparams, std::chrono::system_clock::now())};
  for (const auto& [tag, markdown] : content.texts) values.push_back(text_value(tag, markdown));
  if (content.images) values.push_back(image_value("train/images", *content.images));
  details().append(start_.steps, values);
}

void RunEvents::end(int64_t step) {
  details().append(step, std::vector{session_end_value(std::chrono::system_clock::now())});
}

void RunEvents::histograms(int64_t step, std::span<const NamedValues> tensors) {
  std::vector<std::string> values;
  for (const auto& [name, numbers] : tensors) values.push_back(histogram_value(name, numbers));
  details().append(step, values);
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
          "",
          step,
          {{kEvaluationTag, val.loss}, {"val/acc1", val.acc1()}, {"val/acc5", val.acc5()}});
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
  for (const char* const name : kFolders) {
    if (event_file_in(folder / name).empty()) continue;
    remove_events(folder / name);
    fs::remove(folder / name, error);  // stays where something else is in it
  }
}

namespace {

constexpr size_t kLongest = 10'000;  // bytes of a text

bool is_column(const Flag& flag, const ResolvedFlag& setting) {
  if (flag.group == FlagGroup::kOutput || flag.name == "data" || is_ranks_own(flag)) return false;
  return flag.brief || setting.origin != name_of(Origin::kDefault);
}

HParam column(const Flag& flag, const ResolvedFlag& setting) {
  HParam column{.name = setting.name, .value = printable(setting.value, kLongest)};
  if (flag.kind == FlagKind::kBool) {
    column.value = parse_bool(setting.value).value_or(false);
  } else if (const std::optional<double> number = parse_float(setting.value);
             number && (flag.kind == FlagKind::kInt || flag.kind == FlagKind::kFloat)) {
    column.value = *number;
  }
  return column;
}

// Between backquotes Markdown leaves text unchanged, except for the bars of a table.
std::string code(const std::string& text) {
  std::string shown = "`";
  for (const char c : printable(text, kLongest)) {
    if (c == '|') shown += '\\';
    shown += c == '`' ? '\'' : c;
  }
  return shown + "`";
}

}  // namespace

EventOpening event_opening(const RunRecord& record) {
  std::string command;
  for (const std::string& argument : record.argv) {
    command += (command.empty() ? "" : " ") + argument;
  }
  EventOpening opening{.texts = {{"run/command", code(command)}}};
  std::string table = "| flag | value | from |\n|---|---|---|\n";
  for (const ResolvedFlag& setting : record.flags) {
    table += fmt::format("| {} | {} | {} |\n", setting.name, code(setting.value), setting.origin);
    const Flag* const flag = find_flag("--" + setting.name);
    if (flag != nullptr && is_column(*flag, setting)) {
      opening.hparams.push_back(column(*flag, setting));
    }
  }
  opening.texts.push_back({"run/flags", std::move(table)});
  return opening;
}

}  // namespace lockstep::trainers
