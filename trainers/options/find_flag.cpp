// Looks flags and their variables up in the table.
#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/core.h>

#include "core/error.h"
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

namespace {

constexpr std::string_view kPrefix = "LOCKSTEP_";
constexpr std::string_view kTestPrefix = "LOCKSTEP_EMULATION_";

// The variables besides those of flags. Variables of scripts and tests reach the programs that they
// start.
constexpr std::string_view kOthers[] = {"LOCKSTEP_FAULT",
                                        "LOCKSTEP_JOB",
                                        "LOCKSTEP_TOKEN",
                                        "LOCKSTEP_ISA",
                                        "LOCKSTEP_NO_CUDA_CACHE",
                                        "LOCKSTEP_CUDA",
                                        "LOCKSTEP_ISA_LEVELS",
                                        "LOCKSTEP_MINUTES",
                                        "LOCKSTEP_SUITE_LIMIT",
                                        "LOCKSTEP_NEWCOMER_CUDA",
                                        "LOCKSTEP_NVCC",
                                        "LOCKSTEP_GOLDEN_DIR",
                                        "LOCKSTEP_TEST_FLAGS",
                                        "LOCKSTEP_MNIST",
                                        "LOCKSTEP_CIFAR10",
                                        "LOCKSTEP_CIFAR10_WEIGHTS",
                                        "LOCKSTEP_PHOTOS"};

std::vector<std::string> known_names() {
  std::vector<std::string> names(std::begin(kOthers), std::end(kOthers));
  for (const Flag& flag : flag_table()) names.push_back(environment_name(flag));
  return names;
}

}  // namespace

void check_variables(const char* const* variables) {
  std::vector<std::string> known;
  for (; *variables != nullptr; ++variables) {
    const std::string_view entry = *variables;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kPrefix) || name.starts_with(kTestPrefix)) continue;
    if (known.empty()) known = known_names();
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::vector<std::string_view> candidates(known.begin(), known.end());
    const std::string_view nearest = nearest_word(name, candidates);
    throw UsageError(
        fmt::format("there is no variable {}", printable(name)),
        "LOCKSTEP_<FLAG> sets a flag, and some others are read; a misspelled one would "
        "be without effect",
        nearest.empty() ? "unset it" : fmt::format("{}, or unset it", nearest));
  }
}

}  // namespace lockstep::trainers
