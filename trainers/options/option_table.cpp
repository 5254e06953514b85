#include "trainers/options/option_table.h"

#include <algorithm>
#include <cctype>

#include "trainers/options/flag_rows.h"

namespace lockstep::trainers {
namespace {

using enum FlagGroup;

std::vector<Flag> all_flags() {
  std::vector<Flag> flags;
  for (const std::span<const Flag> group : {data_flags(),
                                            model_flags(),
                                            optimizer_flags(),
                                            precision_flags(),
                                            distributed_flags(),
                                            output_flags()}) {
    flags.insert(flags.end(), group.begin(), group.end());
  }
  return flags;
}

}  // namespace

std::string_view name_of(Program program) {
  return program == Program::kTrainConvnet ? "train_convnet" : "train_resnet";
}

std::string_view name_of(FlagGroup group) {
  switch (group) {
    case kData:
      return "Data";
    case kModel:
      return "Model";
    case kOptimizer:
      return "Optimizer";
    case kPrecision:
      return "Precision";
    case kDistributed:
      return "Distributed";
    case kOutput:
      break;
  }
  return "Output";
}

std::span<const Flag> flag_table() {
  static const std::vector<Flag> flags = all_flags();
  return flags;
}

const Flag* find_flag(std::string_view dashed) {
  for (const Flag& flag : flag_table()) {
    if (dashed.starts_with("--") && dashed.substr(2) == flag.name) return &flag;
    const auto aliases = split_words(flag.aliases, ' ');
    if (std::find(aliases.begin(), aliases.end(), dashed) != aliases.end()) return &flag;
  }
  return nullptr;
}

std::vector<std::string_view> split_words(std::string_view words, char separator) {
  std::vector<std::string_view> parts;
  while (!words.empty()) {
    const size_t end = std::min(words.find(separator), words.size());
    parts.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return parts;
}

std::string environment_name(const Flag& flag) {
  std::string name = "LOCKSTEP_";
  for (const char c : flag.name) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace lockstep::trainers
