// Which build of the CPU kernels runs. Each <op>_cpu.cpp is compiled for up to three x86-64 levels
// (LOCKSTEP_ISA_LEVELS), each in its own namespace. The level is chosen when it is first asked for,
// and stays the same in the process. Other processors have a single level, kV2.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::kernels {

enum class IsaLevel : uint8_t { kV2 = 2, kV3 = 3, kV4 = 4 };

// The best level that this processor supports and this build has, or a lower one that LOCKSTEP_ISA
// (v2, v3, v4) names. Errors: UsageError when LOCKSTEP_ISA names no such level; EnvironmentError
// when this processor supports none of the build's levels.
IsaLevel isa_level();
std::string_view name_of(IsaLevel level);  // "x86-64-v3", or "aarch64"

#if defined(LS_ISA_LEVELS)
// Tells whether this build has CPU kernels for a level. Only for files of kernels/, for which the
// build defines LS_ISA_LEVELS, such as "234" for all and "4" for x86-64-v4.
constexpr bool is_built(IsaLevel level) {
  return std::string_view(LS_ISA_LEVELS).find(static_cast<char>('0' + static_cast<int>(level))) !=
         std::string_view::npos;
}
#endif

}  // namespace lockstep::kernels
