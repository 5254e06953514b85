// Looks flags up in the table.
#include <algorithm>
#include <cctype>

#include "core/words.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {

std::string_view name_of(Program program) {
  return program == Program::kTrainConvnet ? "train_convnet" : "train_resnet";
}

std::string_view name_of(FlagGroup group) {
  constexpr std::string_view kNames[kFlagGroups] = {
      "Data", "Model", "Optimizer", "Precision", "Distributed", "Output"};
  return kNames[static_cast<size_t>(group)];
}

const Flag* find_flag(std::string_view dashed) {
  for (const Flag& flag : flag_table()) {
    if (dashed.starts_with("--") && dashed.substr(2) == flag.name) return &flag;
    if (std::ranges::count(split_words(flag.aliases, ' '), dashed) > 0) return &flag;
  }
  return nullptr;
}

bool only_prints(const Flag& flag) {
  constexpr std::string_view kPrinting[] = {
      "help", "help-all", "version", "check-build", "verbose", "print-config", "completion"};
  return std::ranges::find(kPrinting, flag.name) != std::end(kPrinting);
}

bool is_ranks_own(const Flag& flag) {
  constexpr std::string_view kOwn[] = {"dist-url", "rank", "world-size", "local-rank"};
  return std::ranges::find(kOwn, flag.name) != std::end(kOwn);
}

std::string environment_name(const Flag& flag) {
  std::string name = "LOCKSTEP_";
  for (const char c : flag.name) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace lockstep::trainers
