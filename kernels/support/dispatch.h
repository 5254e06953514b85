// For an op's own .cpp alone: its checks, and the way to its body on the stream's device.
#pragma once

#include "kernels/support/declare_op.h"
#include "kernels/support/isa.h"
#include "kernels/support/op_check.h"

#if defined(LOCKSTEP_CUDA)
#include "core/cuda/range.h"
#endif

// Calls the body of `name` on the device of `stream`: on a CPU the one for the chosen x86-64 level,
// or oneDNN's. Argument list in parentheses. No stream is on CUDA in a build without it.
#define LS_DISPATCH(name, args) LS_DISPATCH_CUDA(name, args) LS_DISPATCH_CPU(name, args)
#define LS_DISPATCH_ONEDNN(name, args) LS_DISPATCH_CUDA(name, args) return onednn::name args;

#if defined(LOCKSTEP_CUDA)
#define LS_DISPATCH_CUDA(name, args)          \
  if (stream.device() == Device::kCuda) {     \
    const lockstep::cuda::Range range(#name); \
    return cuda::name args;                   \
  }
#else
#define LS_DISPATCH_CUDA(name, args)
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

// Calls cuDNN's body on CUDA, in a build that has it, where cudnn::takes `problem`.
#if defined(LOCKSTEP_CUDNN)
#define LS_DISPATCH_CUDNN(name, problem, args)                     \
  if (stream.device() == Device::kCuda && cudnn::takes(problem)) { \
    const lockstep::cuda::Range range(#name);                      \
    return cudnn::name args;                                       \
  }
#else
#define LS_DISPATCH_CUDNN(name, problem, args)
#endif

// Dispatches to cuBLASLt's body where cublaslt::is_there.
#if defined(LOCKSTEP_CUBLASLT)
#define LS_DISPATCH_CUBLASLT(name, args)                          \
  if (stream.device() == Device::kCuda && cublaslt::is_there()) { \
    const lockstep::cuda::Range range(#name);                     \
    return cublaslt::name args;                                   \
  }
#else
#define LS_DISPATCH_CUBLASLT(name, args)
#endif
