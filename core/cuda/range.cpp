#include "core/cuda/range.h"

#include <nvtx3/nvToolsExt.h>

namespace lockstep::cuda {

Range::Range(const char* name) {
  nvtxRangePushA(name);
}

Range::~Range() {
  nvtxRangePop();
}

}  // namespace lockstep::cuda
