#include "trainers/options/known_variables.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "core/error.h"
#include "core/words.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {
namespace {

constexpr std::string_view kOurs = "LOCKSTEP_";
constexpr std::string_view kOfTests = "LOCKSTEP_EMULATION_";

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
    if (!name.starts_with(kOurs) || name.starts_with(kOfTests)) continue;
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
