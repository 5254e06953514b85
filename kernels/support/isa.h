// Which build of the CPU kernels runs. Each <op>_cpu.cpp is compiled for up to three x86-64 levels
// (LOCKSTEP_ISA_LEVELS), in a namespace each; one level is chosen when it is first asked for and
// holds for the process. Other processors have one level, kV2, that is what all of them run.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::kernels {

enum class IsaLevel : uint8_t { kV2 = 2, kV3 = 3, kV4 = 4 };

// The best level that this processor runs and this build has, or the lower one that LOCKSTEP_ISA
// (v2, v3, v4) names. Errors: UsageError where LOCKSTEP_ISA names no such level; EnvironmentError
// where this processor runs none of the build's levels.
IsaLevel isa_level();
std::string_view name_of(IsaLevel level);  // "x86-64-v3", or "aarch64"

#if defined(LS_ISA_LEVELS)
// Whether this build has CPU kernels for a level. For files of kernels/ alone: the build gives them
// LS_ISA_LEVELS, such as "234" for all and "4" for x86-64-v4.
constexpr bool is_built(IsaLevel level) {
  return std::string_view(LS_ISA_LEVELS).find(static_cast<char>('0' + static_cast<int>(level))) !=
         std::string_view::npos;
}
#endif

}  // namespace lockstep::kernels
