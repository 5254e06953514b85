// Grid and block sizes of a launch, and the check of their limits.
#pragma once

#include <cstdint>
#include <string_view>

#include <driver_types.h>
#include <vector_types.h>

namespace lockstep::cuda {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t dynamic_shared_bytes = 0;
};

namespace detail {
[[noreturn]] void throw_too_many_blocks(int64_t blocks);
}

// The number of blocks of `size` that cover `count`. Errors: ShapeError for more than a grid holds.
constexpr unsigned blocks_for(int64_t count, int64_t size) {
  const int64_t blocks = count / size + (count % size > 0 ? 1 : 0);
  if (blocks > INT32_MAX) detail::throw_too_many_blocks(blocks);
  return static_cast<unsigned>(blocks);
}

// Errors: CudaError, with the shape, unless status is cudaSuccess.
void check_launch(cudaError_t status, std::string_view op, const LaunchShape& shape);

}  // namespace lockstep::cuda
