#include "core/cuda/launch_shape.h"

#include <fmt/core.h>

#include "core/cuda/error.h"

namespace lockstep::cuda {
namespace {

std::string text_of(const dim3& size) {
  return fmt::format("({},{},{})", size.x, size.y, size.z);
}

}  // namespace

namespace detail {

void throw_too_many_blocks(int64_t blocks) {
  throw ShapeError(fmt::format("[launch] blocks: got {}, expected at most {}", blocks, INT32_MAX));
}

}  // namespace detail

void check_launch(cudaError_t status, std::string_view op, const LaunchShape& shape) {
  if (status == cudaSuccess) return;
  throw CudaError(op,
                  status,
                  fmt::format("{} blocks of {} threads, {} bytes of dynamic shared memory",
                              text_of(shape.grid),
                              text_of(shape.block),
                              shape.dynamic_shared_bytes));
}

}  // namespace lockstep::cuda
