#include "trainers/report/evaluation_record.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <ranges>
#include <set>
#include <string_view>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/input_file.h"
#include "core/words.h"
#include "engine/state/class_names.h"
#include "trainers/config/augmentation_config.h"
#include "trainers/config/run_files.h"
#include "trainers/options/parser.h"

namespace lockstep::trainers {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTrained = "trained";
constexpr const char* kAverage = "moving average";

std::string bool_text(bool value) {
  return value ? "true" : "false";
}

void put_precision(const PrecisionConfig& precision, Texts& flags) {
  flags["opt-level"] = name_of(precision.level);
  if (!precision.is_mixed()) return;
  flags["dtype"] = name_of(precision.dtype);
  if (precision.level == OptLevel::kO1) return;
  flags["keep-batchnorm-fp32"] = bool_text(precision.keep_batchnorm_fp32);
  flags["master-weights"] = bool_text(precision.master_weights);
}

void put_photo_sizes(const data::PhotoOptions& photos, Texts& flags) {
  flags["train-crop-size"] = std::to_string(photos.train_crop);
  if (const data::CropRamp& ramp = photos.train_ramp; ramp.from > 0) {
    flags["res-from"] = std::to_string(ramp.from);
    flags["res-epochs"] = fmt::format("{}:{}", ramp.first, ramp.last);
  }
  flags["val-resize-size"] = std::to_string(photos.val_resize);
  flags["val-crop-size"] = std::to_string(photos.val_crop);
  flags["interpolation"] = name_of(photos.val_by);
  flags["train-interpolation"] = name_of(photos.train_by);
  flags["decode"] = photos.shrink ? "shrunk" : "exact";
}

}  // namespace

EvaluationRecord evaluation_record(const RunRequest& request, const data::DatasetPair& data) {
  const data::ImageShape shape = data.test->image_shape();
  EvaluationRecord record;
  record.image = fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
  Texts& flags = record.flags;
  flags["arch"] = request.arch;
  flags["cifar-stem"] = bool_text(request.cifar_stem);
  flags["blur-pool"] = bool_text(request.blur_pool);
  flags["num-classes"] = std::to_string(request.classes.value_or(data.test->classes()));
  flags["normalize"] = normalize_text(normalization(request.normalize, *data.test));
  flags["tta"] = name_of(request.test.views);
  put_precision(request.precision, flags);
  if (data.test->name().starts_with("imagefolder/")) put_photo_sizes(request.photos, flags);
  constexpr size_t kWhole = std::numeric_limits<size_t>::max();
  for (const std::string& name : data.test->class_names()) {
    record.class_names.push_back(printable(name, kWhole));  // JSON is UTF-8, names of folders any
  }
  return record;
}

std::string to_json(const EvaluationRecord& record) {
  return Json{{"flags", record.flags},
              {"image", record.image},
              {"class_names", record.class_names},
              {"weights", record.average ? kAverage : kTrained}}
      .dump();
}

EvaluationRecord evaluation_record_of(const std::string& json) {
  const Json object = Json::parse(json);
  return {.flags = object.at("flags"),
          .image = object.at("image"),
          .class_names = object.at("class_names"),
          .average = object.at("weights") == kAverage};
}

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

namespace {

constexpr const char* kList = "a name a line, in the order of the outputs";

// printable()'s argument, before it was printed whole.
std::string unprinted(std::string_view text) {
  constexpr size_t kEscape = 4;  // \xNN
  constexpr int kHex = 16;
  std::string name;
  while (!text.empty()) {
    const bool escaped = text.starts_with("\\x") && text.size() >= kEscape &&
                         text.substr(2, 2).find_first_not_of("0123456789abcdef") == text.npos;
    name += escaped ? static_cast<char>(std::stoi(std::string(text.substr(2, 2)), nullptr, kHex))
                    : text.front();
    text.remove_prefix(escaped ? kEscape : 1);
  }
  return name;
}

// Returns what is wrong with the list; nothing for a good one.
std::optional<std::string> fault_in(const std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (name.empty()) return "has an empty name";
    if (!seen.insert(name).second) return fmt::format("has '{}' twice", printable(name));
  }
  return std::nullopt;
}

std::vector<std::string> check_given(const OutputClasses& classes,
                                     const EvaluationRecord& now,
                                     const data::Dataset& images) {
  if (images.class_names().empty()) {
    throw UsageError("--class-names would change nothing",
                     fmt::format("{} has no class folders", images.name()),
                     "leave it out");
  }
  const std::string& outputs = now.flags.at("num-classes");
  if (outputs != std::to_string(classes.given.size())) {
    throw DataError(fmt::format("--class-names names {} classes, and there are {} outputs",
                                classes.given.size(),
                                outputs),
                    "each line stands for one output",
                    fmt::format("{}: {} of them", kList, outputs));
  }
  const auto other = other_class(now.class_names, classes.recorded.class_names, classes.file);
  if (!other) return {};
  return {fmt::format("note: {}; --class-names is used", *other)};
}

}  // namespace

std::vector<std::string> read_class_names(const std::filesystem::path& file) {
  if (file.empty()) return {};
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const std::string text = contents_of(file, kMostBytes).value_or("");
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  std::vector<std::string> names;
  for (std::string_view line : split_words(rest, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    names.emplace_back(line);
  }
  const std::string what = fmt::format("--class-names {}", printable(file.string()));
  if (names.empty()) {
    throw DataError(what + " names no class", "it is empty, missing or cannot be read", kList);
  }
  if (const auto fault = fault_in(names)) {
    throw DataError(fmt::format("{} {}", what, *fault), "each line stands for one output", kList);
  }
  return names;
}

std::vector<std::string> OutputClasses::names() const {
  if (!given.empty()) return given;
  std::vector<std::string> names(recorded.class_names.size());
  std::ranges::transform(recorded.class_names, names.begin(), unprinted);
  if (const auto fault = fault_in(names)) {
    throw CheckpointError(fmt::format("the list of classes in {} {}", file, *fault),
                          "each name stands for one output",
                          "--class-names FILE: " + std::string(kList));
  }
  return names;
}

std::vector<std::string> OutputClasses::check(const EvaluationRecord& now,
                                              const data::Dataset& images) const {
  if (!given.empty()) return check_given(*this, now, images);
  const bool has_folders = !images.class_names().empty();
  const bool is_named = !recorded.class_names.empty();
  if (has_folders && is_named) return {};  // compared by name
  const std::string& outputs = now.flags.at("num-classes");
  if (outputs == std::to_string(images.classes())) {
    if (!has_folders) return {};
    return {
        fmt::format("note: {} records no names of classes: its outputs are taken to stand for "
                    "the folders in byte order",
                    file)};
  }
  // A training on such a set, whose labels have a fixed meaning, with more outputs than it needs.
  if (!has_folders && !is_named && recorded.flags.contains("num-classes")) return {};
  throw DataError(fmt::format("{} outputs are compared with the {} classes of {}",
                              outputs,
                              images.classes(),
                              images.name()),
                  fmt::format("which output stands for which of them is not known from {}", file),
                  has_folders
                      ? fmt::format("--class-names FILE: {}, named as the folders are", kList)
                      : "the images that the weights were trained on, or others in class folders");
}

}  // namespace lockstep::trainers
