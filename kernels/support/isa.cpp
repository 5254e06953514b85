#include "kernels/support/isa.h"

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::kernels {
namespace {

#if defined(__x86_64__)
constexpr std::array<std::string_view, 3> kNames = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
constexpr size_t kPrefix = std::string_view("x86-64-").size();

IsaLevel processor_level() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return IsaLevel::kV4;
  return __builtin_cpu_supports("x86-64-v3") ? IsaLevel::kV3 : IsaLevel::kV2;
}
#else
#if defined(__aarch64__)
constexpr std::array<std::string_view, 1> kNames = {"aarch64"};
#else
constexpr std::array<std::string_view, 1> kNames = {"portable"};
#endif
constexpr size_t kPrefix = 0;

IsaLevel processor_level() {
  return IsaLevel::kV2;
}
#endif

constexpr std::array kLevels = {IsaLevel::kV2, IsaLevel::kV3, IsaLevel::kV4};

std::string_view short_name(IsaLevel level) {
  return name_of(level).substr(kPrefix);
}

// In ascending order.
std::vector<IsaLevel> levels_to_choose_from(IsaLevel processor) {
  std::vector<IsaLevel> levels;
  for (const IsaLevel level : kLevels) {
    if (level <= processor && is_built(level)) levels.push_back(level);
  }
  return levels;
}

IsaLevel choose() {
  const IsaLevel processor = processor_level();
  const std::vector<IsaLevel> levels = levels_to_choose_from(processor);
  if (levels.empty()) {
    throw EnvironmentError("this program was built for a newer processor",
                           fmt::format("this one runs x86-64-v2 to {}, the program needs v{}",
                                       short_name(processor),
                                       std::string_view(LS_ISA_LEVELS).front()),
                           "a build on this machine, or one for all processors: cmake --preset "
                           "release && cmake --build --preset release");
  }
  const char* wanted =
      std::getenv("LOCKSTEP_ISA");  // NOLINT(concurrency-mt-unsafe): read once, at start
  if (wanted == nullptr || *wanted == '\0') return levels.back();
  std::string known;
  for (const IsaLevel level : levels) {
    if (wanted == short_name(level)) return level;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", short_name(level));
  }
  throw UsageError(
      fmt::format("LOCKSTEP_ISA is '{}'", wanted),
      fmt::format("this build on this processor runs {}", known),
      "unset it to get the best level; cmake --preset release builds all of v2, v3 and v4");
}

}  // namespace

IsaLevel isa_level() {
  static const IsaLevel level = choose();
  return level;
}

std::string_view name_of(IsaLevel level) {
  return kNames.at(static_cast<size_t>(level) - static_cast<size_t>(IsaLevel::kV2));
}

}  // namespace lockstep::kernels
