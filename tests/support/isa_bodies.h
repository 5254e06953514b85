// The versions of an op that this processor can run, for comparing their bits.
#pragma once

#include <vector>

#include "kernels/support/isa.h"

namespace lockstep::testing {

// The versions up to kernels::isa_level(), which LOCKSTEP_ISA may lower.
template <class Op>
std::vector<Op*> isa_bodies(Op* v2, Op* v3, Op* v4) {
  std::vector<Op*> bodies = {v2};
  if (kernels::isa_level() >= kernels::IsaLevel::kV3) bodies.push_back(v3);
  if (kernels::isa_level() >= kernels::IsaLevel::kV4) bodies.push_back(v4);
  return bodies;
}

}  // namespace lockstep::testing

// The versions of an op, for tests in lockstep::kernels.
#if defined(__x86_64__)
#define LS_ISA_BODIES(name) \
  ::lockstep::testing::isa_bodies(cpu_v2::name, cpu_v3::name, cpu_v4::name)
#else
#define LS_ISA_BODIES(name) (std::vector{&cpu_v2::name})
#endif
