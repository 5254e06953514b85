// Specification of kernels/reduce/tensor_digests.h, one byte at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::reference {

inline uint64_t tensor_digest(std::span<const std::byte> bytes) {
  std::vector<uint64_t> words(1 + (bytes.size() + 7) / 8);
  words[0] = bytes.size();
  for (size_t i = 0; i < bytes.size(); ++i)
    words[1 + i / 8] += std::to_integer<uint64_t>(bytes[i]) << (8 * (i % 8));
  uint64_t digest = 0;
  uint64_t key = 0;
  for (const uint64_t word : words) {
    key += 0x9e3779b97f4a7c15;
    uint64_t mixed = word + key;
    mixed ^= mixed >> 30;
    mixed *= 0xbf58476d1ce4e5b9;
    mixed ^= mixed >> 27;
    mixed *= 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
    digest += mixed;
  }
  return digest;
}

}  // namespace lockstep::reference
