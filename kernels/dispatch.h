// How an op finds its body for the stream's device.
#pragma once

#include "core/stream.h"
#include "kernels/isa.h"

#if defined(LOCKSTEP_CUDA)
#include "core/cuda/range.h"
#endif

// Declares op `name` and its bodies with one signature. A body that drifts from it does not
// compile.
#define LS_DECLARE_OP(Signature, name) \
  Signature name;                      \
  namespace cuda {                     \
  Signature name;                      \
  }                                    \
  namespace cpu_v2 {                   \
  Signature name;                      \
  }                                    \
  namespace cpu_v3 {                   \
  Signature name;                      \
  }                                    \
  namespace cpu_v4 {                   \
  Signature name;                      \
  }

// The same for an op whose CPU body is a call into oneDNN, <op>_onednn.cpp.
#define LS_DECLARE_ONEDNN_OP(Signature, name) \
  Signature name;                             \
  namespace cuda {                            \
  Signature name;                             \
  }                                           \
  namespace onednn {                          \
  Signature name;                             \
  }

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
#define LS_DISPATCH_CPU(name, args) \
  switch (isa_level()) {            \
    case IsaLevel::kV2:             \
      return cpu_v2::name args;     \
    case IsaLevel::kV3:             \
      return cpu_v3::name args;     \
    case IsaLevel::kV4:             \
      return cpu_v4::name args;     \
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

// The same for cuBLASLt's, where cublaslt::is_there.
#if defined(LOCKSTEP_CUBLASLT)
#define LS_DISPATCH_CUBLASLT(name, args)                          \
  if (stream.device() == Device::kCuda && cublaslt::is_there()) { \
    const lockstep::cuda::Range range(#name);                     \
    return cublaslt::name args;                                   \
  }
#else
#define LS_DISPATCH_CUBLASLT(name, args)
#endif

// The namespace of the body being compiled; the build sets LS_ISA to 2, 3 or 4 for each
// <op>_cpu.cpp.
#if defined(LS_ISA)
#define LS_ISA_JOIN_(a, b) a##b
#define LS_ISA_JOIN(a, b) LS_ISA_JOIN_(a, b)
#define LS_CPU LS_ISA_JOIN(cpu_v, LS_ISA)
#endif
