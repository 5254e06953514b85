// Which build of the CPU kernels runs. Each <op>_cpu.cpp is compiled for three x86-64 levels, in a
// namespace each; one level is chosen when it is first asked for and holds for the process.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::kernels {

enum class IsaLevel : uint8_t { kV2 = 2, kV3 = 3, kV4 = 4 };

// The best level of this processor, or the lower one that LOCKSTEP_ISA (v2, v3, v4) names.
// Errors: UsageError for another value or one that this processor lacks.
IsaLevel isa_level();
std::string_view name_of(IsaLevel level);  // "x86-64-v3"

}  // namespace lockstep::kernels
