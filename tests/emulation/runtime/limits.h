// Hardware limits of the fake devices: those of sm_90.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::emulation {

constexpr unsigned kThreadsPerBlock = 1024;  // the limit also holds for x and for y
constexpr unsigned kThreadsInZ = 64;
constexpr unsigned kBlocksInX = INT32_MAX;
constexpr unsigned kBlocksInYOrZ = UINT16_MAX;
constexpr size_t kSharedBytes = size_t{48} << 10;
constexpr size_t kDynamicSharedBytes = size_t{227} << 10;  // for kernels that request it
constexpr size_t kArgumentBytes = 32764;

}  // namespace lockstep::emulation
