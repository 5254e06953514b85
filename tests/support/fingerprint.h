// A few numbers that represent a large tensor.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

namespace lockstep::testing {

// Projections onto random vectors of +1 and -1. The mean square of the differences between two
// tensors' projections estimates the squared norm of the tensors' difference.
struct Fingerprint {
  static constexpr size_t kProjections = 8;

  std::array<double, kProjections> projections{};
  double norm = 0;

  // The estimated norm of the difference from the tensor with these projections.
  double distance(std::span<const float> other) const {
    double sum = 0;
    for (size_t k = 0; k < kProjections; ++k) {
      const double difference = projections[k] - static_cast<double>(other[k]);
      sum += difference * difference;
    }
    return std::sqrt(sum / kProjections);
  }
};

// The signs of element i are the highest byte of a hash of i, with one bit per projection. Elements
// are first summed by that byte.
inline Fingerprint fingerprint(std::span<const float> row_major) {
  std::array<double, size_t{1} << Fingerprint::kProjections> sums{};
  double squares = 0;
  for (size_t i = 0; i < row_major.size(); ++i) {
    auto hash = static_cast<uint32_t>(i);
    hash = (hash ^ (hash >> 15)) * 0x9e3779b1U;
    hash = (hash ^ (hash >> 13)) * 0x85ebca6bU;
    const auto value = static_cast<double>(row_major[i]);
    sums[hash >> 24] += value;
    squares += value * value;
  }
  Fingerprint result{.norm = std::sqrt(squares)};
  for (size_t byte = 0; byte < sums.size(); ++byte) {
    for (size_t k = 0; k < Fingerprint::kProjections; ++k) {
      result.projections[k] += (byte >> k & 1U) != 0 ? -sums[byte] : sums[byte];
    }
  }
  return result;
}

}  // namespace lockstep::testing
