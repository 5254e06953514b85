// Code that the bodies of kernels/reduce/tensor_digests.h share. Spec:
// tests/reference/tensor_digests.h
#pragma once

#include <cstdint>

#include "kernels/support/host_device.h"

namespace lockstep::kernels {

// Returns what word `place` adds to the digest.
LS_HOST_DEVICE uint64_t digest_term(uint64_t word, uint64_t place) {
  uint64_t z = word + (place + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace lockstep::kernels
