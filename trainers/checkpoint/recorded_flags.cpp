#include "trainers/checkpoint/recorded_flags.h"

#include <algorithm>
#include <ranges>

#include <fmt/ranges.h>

#include "core/words.h"
#include "engine/state/class_names.h"
#include "trainers/options/parser.h"

namespace lockstep::trainers {
namespace {

enum class Part : uint8_t { kNetwork, kOutputs, kPixels, kSizes, kViews, kPrecision };

struct RecordedFlag {
  const char* name;
  Part part;
};

constexpr RecordedFlag kRecorded[] = {{"arch", Part::kNetwork},
                                      {"cifar-stem", Part::kNetwork},
                                      {"blur-pool", Part::kNetwork},
                                      {"num-classes", Part::kOutputs},
                                      {"normalize", Part::kPixels},
                                      {"train-crop-size", Part::kSizes},
                                      {"res-from", Part::kSizes},
                                      {"res-epochs", Part::kSizes},
                                      {"val-resize-size", Part::kSizes},
                                      {"val-crop-size", Part::kSizes},
                                      {"interpolation", Part::kSizes},
                                      {"train-interpolation", Part::kSizes},
                                      {"decode", Part::kSizes},
                                      {"tta", Part::kViews},
                                      {"opt-level", Part::kPrecision},
                                      {"dtype", Part::kPrecision},
                                      {"keep-batchnorm-fp32", Part::kPrecision},
                                      {"master-weights", Part::kPrecision}};

bool takes(WeightsUse use, Part part) {
  switch (use) {
    case WeightsUse::kEvaluate:
      return true;
    case WeightsUse::kResume:
      return part != Part::kPrecision;
    case WeightsUse::kFineTune:
      break;
  }
  return part == Part::kNetwork || part == Part::kPixels;
}

auto flags_taken(WeightsUse use) {
  return std::views::filter(kRecorded,
                            [=](const RecordedFlag& flag) { return takes(use, flag.part); });
}

bool precision_is_given(const Options& options) {
  return std::ranges::any_of(kRecorded, [&](const RecordedFlag& flag) {
    return flag.part == Part::kPrecision && options.given(flag.name);
  });
}

const std::string* find(const Texts& flags, const char* name) {
  const auto found = flags.find(name);
  return found == flags.end() ? nullptr : &found->second;
}

bool differs(const Texts& a, const Texts& b, const char* name) {
  const std::string* const left = find(a, name);
  const std::string* const right = find(b, name);
  return left != nullptr && right != nullptr && *left != *right;
}

void note_taken(const Texts& asked,
                const Texts& now,
                WeightsUse use,
                const std::string& file,
                std::vector<std::string>& notes) {
  std::vector<std::string> taken;
  std::vector<std::string> otherwise;
  for (const RecordedFlag& flag : flags_taken(use)) {
    const std::string* const current = find(now, flag.name);
    const std::string* const before = find(asked, flag.name);
    if (current == nullptr || (before != nullptr && *before == *current)) continue;
    taken.push_back(fmt::format("--{} {}", flag.name, *current));
    if (before != nullptr) otherwise.push_back(fmt::format("--{} {}", flag.name, *before));
  }
  if (taken.empty()) return;
  notes.push_back(fmt::format("note: {} as {} records; without it {}",
                              fmt::join(taken, " "),
                              file,
                              fmt::join(otherwise, " ")));
}

}  // namespace

void take_flags(Options& options, const EvaluationRecord& recorded, WeightsUse use) {
  const bool precision_given = precision_is_given(options);
  for (const RecordedFlag& recorded_flag : flags_taken(use)) {
    const Flag& flag = *find_flag(fmt::format("--{}", recorded_flag.name));
    const std::string* const value = find(recorded.flags, recorded_flag.name);
    if (value == nullptr || !flag.is_for(options.program)) continue;
    if (recorded_flag.part == Part::kPrecision && precision_given) continue;
    check_flag_value(flag, options.program, fmt::format("--{}", flag.name), *value);
    options.take(flag.name, *value);
  }
}

std::optional<Contradiction> contradiction(const EvaluationRecord& now,
                                           const EvaluationRecord& recorded,
                                           WeightsUse use) {
  for (const RecordedFlag& flag : flags_taken(use)) {
    const bool fits_no_other = flag.part == Part::kNetwork || flag.part == Part::kOutputs;
    if (!fits_no_other && use != WeightsUse::kResume) continue;
    if (!differs(now.flags, recorded.flags, flag.name)) continue;
    return Contradiction{.flag = fmt::format("--{}", flag.name),
                         .now = *find(now.flags, flag.name),
                         .recorded = printable(*find(recorded.flags, flag.name))};
  }
  return std::nullopt;
}

std::vector<std::string> notes_on_flags(const EvaluationRecord& asked,
                                        const EvaluationRecord& now,
                                        const EvaluationRecord& recorded,
                                        WeightsUse use,
                                        const std::string& file) {
  std::vector<std::string> notes;
  note_taken(asked.flags, now.flags, use, file, notes);
  for (const RecordedFlag& flag : flags_taken(use)) {
    if (!differs(now.flags, recorded.flags, flag.name)) continue;
    notes.push_back(fmt::format("note: --{} {} as given; {} records {}",
                                flag.name,
                                now.flags.at(flag.name),
                                file,
                                printable(recorded.flags.at(flag.name))));
  }
  if (!recorded.flags.contains("normalize")) {
    notes.push_back(fmt::format(
        "note: {} does not record how its images were normalized: --normalize {} is assumed",
        file,
        now.flags.at("normalize")));
  }
  const bool sizes_are_compared =
      now.flags.contains("val-crop-size") && recorded.flags.contains("val-crop-size");
  if (use == WeightsUse::kEvaluate && !recorded.image.empty() && recorded.image != now.image &&
      !sizes_are_compared) {
    notes.push_back(fmt::format(
        "note: images are {} here; {} records {}", now.image, file, printable(recorded.image)));
  }
  const bool fresh_classifier = differs(now.flags, recorded.flags, "num-classes");
  if (use != WeightsUse::kFineTune || fresh_classifier) return notes;
  if (const auto other = other_class(now.class_names, recorded.class_names, file)) {
    notes.push_back(fmt::format("note: {}; the classifier starts from its weights", *other));
  }
  return notes;
}

}  // namespace lockstep::trainers
