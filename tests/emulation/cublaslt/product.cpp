#include "tests/emulation/cublaslt/product.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace lockstep::emulation {
namespace {

uint16_t bfloat16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

size_t Matrix::bytes() const {
  return ((columns - 1) * static_cast<uint64_t>(leading_dimension) + rows) * element_bytes();
}

float Matrix::at(const void* values, uint64_t row, uint64_t column) const {
  const uint64_t index = column * static_cast<uint64_t>(leading_dimension) + row;
  const auto* const place = static_cast<const std::byte*>(values) + index * element_bytes();
  if (type == CUDA_R_32F) {
    float value = 0;
    std::memcpy(&value, place, sizeof(value));
    return value;
  }
  if (type == CUDA_R_16F) {
    _Float16 value = 0;
    std::memcpy(&value, place, sizeof(value));
    return static_cast<float>(value);
  }
  uint16_t high = 0;
  std::memcpy(&high, place, sizeof(high));
  return std::bit_cast<float>(uint32_t{high} << 16);
}

void Matrix::put(void* values, uint64_t row, uint64_t column, float value) const {
  const uint64_t index = column * static_cast<uint64_t>(leading_dimension) + row;
  auto* const place = static_cast<std::byte*>(values) + index * element_bytes();
  if (type == CUDA_R_32F) {
    std::memcpy(place, &value, sizeof(value));
  } else if (type == CUDA_R_16F) {
    const auto rounded = static_cast<_Float16>(value);
    std::memcpy(place, &rounded, sizeof(rounded));
  } else {
    const uint16_t rounded = bfloat16_bits(value);
    std::memcpy(place, &rounded, sizeof(rounded));
  }
}

bool Product::fits_together() const {
  const uint64_t depth_b = transposes_b ? b.columns : b.rows;
  const uint64_t rows = transposes_a ? a.columns : a.rows;
  const uint64_t columns = transposes_b ? b.rows : b.columns;
  return depth() == depth_b && rows == d.rows && columns == d.columns && a.type == b.type &&
         (d.type == a.type || d.type == CUDA_R_32F);
}

void Product::compute() const {
  const uint64_t block = 3 + (d.rows + 3 * d.columns) % 7;
  const Matrix bias_vector = {d.type, d.rows, 1, static_cast<int64_t>(d.rows)};
  for (uint64_t column = 0; column < d.columns; ++column) {
    for (uint64_t row = 0; row < d.rows; ++row) {
      float sum = 0;
      for (uint64_t first = 0; first < depth(); first += block) {
        float part = 0;
        for (uint64_t k = first; k < std::min(first + block, depth()); ++k) {
          const float left = transposes_a ? a.at(values_a, k, row) : a.at(values_a, row, k);
          const float right = transposes_b ? b.at(values_b, column, k) : b.at(values_b, k, column);
          part = std::fma(left, right, part);
        }
        sum += part;
      }
      if (bias != nullptr) sum += bias_vector.at(bias, row, 0);
      d.put(values_d, row, column, sum);
    }
  }
}

}  // namespace lockstep::emulation
