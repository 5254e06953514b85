// The x86-64 levels that this build has CPU kernels for. For files of kernels/ alone: the build
// gives them LS_ISA_LEVELS, such as "234" for all and "4" for x86-64-v4.
#pragma once

#include <string_view>

#include "kernels/support/isa.h"

namespace lockstep::kernels {

constexpr bool is_built(IsaLevel level) {
  return std::string_view(LS_ISA_LEVELS).find(static_cast<char>('0' + static_cast<int>(level))) !=
         std::string_view::npos;
}

}  // namespace lockstep::kernels
