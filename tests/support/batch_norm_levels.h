// The versions of batch norm that this processor can run, for comparing their bits.
#pragma once

#include <vector>

#include "kernels/support/isa.h"
#include "tests/support/batch_norm_step.h"

namespace lockstep::testing {

inline std::vector<BatchNormBodies> batch_norm_levels() {
  using namespace kernels;
  std::vector<BatchNormBodies> levels = {LS_BATCH_NORM_BODIES(cpu_v2)};
#if defined(__x86_64__)
  if (isa_level() >= IsaLevel::kV3) levels.push_back(LS_BATCH_NORM_BODIES(cpu_v3));
  if (isa_level() >= IsaLevel::kV4) levels.push_back(LS_BATCH_NORM_BODIES(cpu_v4));
#endif
  return levels;
}

}  // namespace lockstep::testing
