// A matrix product of the emulated cuBLASLt: its matrices and its sums.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cublasLt.h>

namespace lockstep::emulation {

// Column-major.
struct Matrix {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading_dimension;

  size_t element_bytes() const { return type == CUDA_R_32F ? 4 : 2; }
  size_t bytes() const;  // from its first to its last element
  float at(const void* values, uint64_t row, uint64_t column) const;
  void put(void* values, uint64_t row, uint64_t column, float value) const;
};

struct Product {
  Matrix a, b, d;
  bool transposes_a, transposes_b;
  const void* values_a = nullptr;
  const void* values_b = nullptr;
  const void* bias = nullptr;
  void* values_d = nullptr;

  uint64_t depth() const { return transposes_a ? a.rows : a.columns; }
  bool fits_together() const;
  // Sums in f32 over blocks of the depth. The block length depends on the shape of d, so, as with
  // the real library, the same column can have other bits as part of another matrix.
  void compute() const;
};

}  // namespace lockstep::emulation
