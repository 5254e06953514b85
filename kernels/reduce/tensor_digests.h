// 64-bit digests of many tensors' bytes, computed on their device, to compare replicas without
// copying them.
//   digest = sum over i of mix(word[i] + (i + 1) * 0x9e3779b97f4a7c15)  mod 2^64
// word[0] is the number of bytes; the other words are groups of eight bytes, little-endian, the
// last one padded with zeros. mix is SplitMix64's output function, a bijection: a change of one
// word always changes the digest, other changes do except with probability 2^-64. A sum of integers
// does not depend on the order, thread or device. This is not the XXH3 of core/digest.h and not
// secure against an adversary, and it does not cover shapes and dtypes.
// Source: Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators" (mix).
// Spec: tests/reference/tensor_digests.h
#pragma once

#include <span>

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Shapes: tensors any, of any dtype; digests (n), i64 with the digests' bits.
// Errors: ShapeError, DtypeError, DeviceError.
using TensorDigests = void(Stream& stream, std::span<const Tensor> tensors, Tensor& digests);

// Returns the term that word number `place` adds to the digest.
LS_HOST_DEVICE uint64_t digest_term(uint64_t word, uint64_t place) {
  uint64_t z = word + (place + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

LS_DECLARE_OP(TensorDigests, tensor_digests)

}  // namespace lockstep::kernels
