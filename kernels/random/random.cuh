// Philox on the device.
#pragma once

#include "core/philox.h"

namespace lockstep::kernels::cuda {
namespace {

// block.words[i], without indexing, which would move the block to local memory. Requires: 0 <= i <
// 4.
__device__ __forceinline__ uint32_t word_of(const PhiloxBlock& block, int i) {
  const uint32_t low = i == 0 ? block.words[0] : block.words[1];
  const uint32_t high = i == 2 ? block.words[2] : block.words[3];
  return i < 2 ? low : high;
}

}  // namespace
}  // namespace lockstep::kernels::cuda
