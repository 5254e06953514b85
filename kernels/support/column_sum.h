// The order in which columns of many rows are summed, the same on all devices.
//   Rows are cut into chunks of kChunkRows. In a chunk row r is added to partial sum r % kSumLanes,
//   which start at +0; the partial sums are added up in core/tree.h's order. The sums of the chunks
//   are rows again, until one is left; no rows give +0.
// So a chunk can be one block's work, and a vector's lanes or a block's threads can sum in
// parallel.
#pragma once

#include <cstdint>

#include "core/round_up.h"
#include "core/tree.h"

namespace lockstep::kernels {

inline constexpr int64_t kChunkRows = 256;
inline constexpr int kSumLanes = 16;

[[gnu::always_inline]] constexpr int64_t chunks_of(int64_t rows) {
  return rows == 0 ? 1 : ceil_div(rows, kChunkRows);
}

}  // namespace lockstep::kernels
