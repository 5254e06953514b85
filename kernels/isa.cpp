#include "kernels/isa.h"

#include <cstdlib>
#include <string>

#include "core/error.h"

namespace lockstep::kernels {
namespace {

IsaLevel processor_level() {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v4) return IsaLevel::kV4;
  return v3 ? IsaLevel::kV3 : IsaLevel::kV2;
}

IsaLevel choose() {
  const IsaLevel best = processor_level();
  const char* wanted =
      std::getenv("LOCKSTEP_ISA");  // NOLINT(concurrency-mt-unsafe): read once, at start
  if (wanted == nullptr || *wanted == '\0') return best;
  for (const IsaLevel level : {IsaLevel::kV2, IsaLevel::kV3, IsaLevel::kV4}) {
    if (std::string_view(wanted) == name_of(level).substr(7) && level <= best) return level;
  }
  throw UsageError(fmt::format("LOCKSTEP_ISA is '{}'", wanted),
                   fmt::format("this processor runs v2 to {}", name_of(best).substr(7)),
                   "unset it to get the best level");
}

}  // namespace

IsaLevel isa_level() {
  static const IsaLevel level = choose();
  return level;
}

std::string_view name_of(IsaLevel level) {
  switch (level) {
    case IsaLevel::kV2:
      return "x86-64-v2";
    case IsaLevel::kV3:
      return "x86-64-v3";
    case IsaLevel::kV4:
      return "x86-64-v4";
  }
  return "?";
}

}  // namespace lockstep::kernels
