// How an op's header declares the op and the bodies that it may have, and how these share code.
#pragma once

#include "core/stream.h"

namespace lockstep::kernels {
// Stands for an optional argument that is not given: undefined. Not inline, since each x86-64 level
// would get code of its own for it.
extern const Tensor no_tensor;
}  // namespace lockstep::kernels

// Declares a function's body for each x86-64 level.
#define LS_CPU_BODIES(Signature, name) \
  namespace cpu_v2 {                   \
  Signature name;                      \
  }                                    \
  namespace cpu_v3 {                   \
  Signature name;                      \
  }                                    \
  namespace cpu_v4 {                   \
  Signature name;                      \
  }

// Declares op `name` and its bodies with one signature. A body that drifts from it does not
// compile.
#define LS_DECLARE_OP(Signature, name) \
  Signature name;                      \
  namespace cuda {                     \
  Signature name;                      \
  }                                    \
  LS_CPU_BODIES(Signature, name)

// Declares an op whose CPU body is a call into oneDNN, <op>_onednn.cpp.
#define LS_DECLARE_ONEDNN_OP(Signature, name) \
  Signature name;                             \
  namespace cuda {                            \
  Signature name;                             \
  }                                           \
  namespace onednn {                          \
  Signature name;                             \
  }

// Marks a function that the CPU and the CUDA body of an op share: one expression, the same bits.
// Always inlined on the host: what a *_cpu.cpp emits is compiled for its x86-64 level alone.
#if defined(__CUDACC__)
#define LS_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define LS_HOST_DEVICE [[gnu::always_inline]] inline
#endif

// The namespace of the body being compiled; the build sets LS_ISA to 2, 3 or 4 for each
// <op>_cpu.cpp.
#if defined(LS_ISA)
#define LS_ISA_JOIN_(a, b) a##b
#define LS_ISA_JOIN(a, b) LS_ISA_JOIN_(a, b)
#define LS_CPU LS_ISA_JOIN(cpu_v, LS_ISA)
#endif
