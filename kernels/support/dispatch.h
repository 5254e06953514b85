// Only for an op's own .cpp: what it needs for its checks, and to call its body on the stream's
// device.
#pragma once

#include "kernels/support/declare_op.h"
#include "kernels/support/isa.h"
#include "kernels/support/op_check.h"

#if defined(LOCKSTEP_CUDA)
#include "core/cuda/range.h"
#endif

// Calls the body of `name` on the device of `stream`: on a CPU the one for the chosen x86-64 level,
// or oneDNN's. `args` is the argument list in parentheses. In a build without CUDA no stream is on
// CUDA.
#define LS_DISPATCH(name, args) LS_DISPATCH_CUDA(name, args) LS_DISPATCH_CPU(name, args)
#define LS_DISPATCH_ONEDNN(name, args) LS_DISPATCH_CUDA(name, args) return onednn::name args;
#define LS_DISPATCH_CUDA(name, args) \
  LS_DISPATCH_CUDA_IF(stream.device() == Device::kCuda, cuda, name, args)
// Calls a library's body on CUDA if the library takes the call; in a build without it
// (kernels/<library>_absent.cpp) it takes none. `operands` and `args` are lists in parentheses.
#define LS_DISPATCH_CUDNN(name, problem, operands, args)                                        \
  LS_DISPATCH_CUDA_IF(                                                                          \
      stream.device() == Device::kCuda && cudnn::takes(problem) && cudnn::are_aligned operands, \
      cudnn,                                                                                    \
      name,                                                                                     \
      args)
#define LS_DISPATCH_CUBLASLT(name, args) \
  LS_DISPATCH_CUDA_IF(                   \
      stream.device() == Device::kCuda && cublaslt::is_available(), cublaslt, name, args)

#if defined(LOCKSTEP_CUDA)
#define LS_DISPATCH_CUDA_IF(condition, space, name, args) \
  if (condition) {                                        \
    const lockstep::cuda::Range range(#name);             \
    return space::name args;                              \
  }
#else
#define LS_DISPATCH_CUDA_IF(condition, space, name, args)
#endif
#define LS_DISPATCH_CPU(name, args)                                    \
  switch (isa_level()) {                                               \
    case IsaLevel::kV2:                                                \
      if constexpr (is_built(IsaLevel::kV2)) return cpu_v2::name args; \
      break;                                                           \
    case IsaLevel::kV3:                                                \
      if constexpr (is_built(IsaLevel::kV3)) return cpu_v3::name args; \
      break;                                                           \
    case IsaLevel::kV4:                                                \
      if constexpr (is_built(IsaLevel::kV4)) return cpu_v4::name args; \
      break;                                                           \
  }
