#include "trainers/checkpoint/output_classes.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>

#include <fmt/core.h>

#include "core/error.h"
#include "core/input_file.h"
#include "core/words.h"
#include "engine/state/class_names.h"
#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/checkpoint/recorded_flags.h"
#include "trainers/config/run_files.h"

namespace lockstep::trainers {
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
