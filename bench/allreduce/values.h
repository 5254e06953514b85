// Generates test values, and counts which of their sums are wrong.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace lockstep::bench {

// Each value depends on its index, the rank and a seed alone.
enum class Pattern : uint8_t {
  kExact,      // whole numbers, all of whose sums are exact: the order does not matter
  kCanceling,  // large and small numbers of both signs: the order shows in the bits
};

struct Sample {
  Pattern pattern = Pattern::kExact;
  uint64_t seed = 0;
  int ranks = 1;
};

// Fills `values` with what `rank` adds to the sum. Dtypes: f32, f16, bf16. Errors: DtypeError.
void fill_values(Tensor& values, const Sample& sample, int rank);
void fill_ones(Tensor& values);

// Counts the elements that are not, byte for byte, the sum of all ranks' values. The expected sum
// is the exact one, or the one in core/tree.h's order with each node rounded to the type. Errors:
// DtypeError.
int64_t count_wrong(const Tensor& sums, const Sample& sample);

}  // namespace lockstep::bench
