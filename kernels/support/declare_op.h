// Macros with which a header declares an op and its bodies, and marks code that they share.
#pragma once

#include "core/stream.h"

namespace lockstep::kernels {
// An undefined tensor, for an optional argument that is not given. Not inline, because files for
// different x86-64 levels would each emit code for it.
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

// Declares op `name` and its bodies with one signature. A body with another signature does not
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

// Marks a function that the CPU and the CUDA body of an op share, so that both give the same bits.
// Always inlined on the host, since code that a *_cpu.cpp emits is compiled for its x86-64 level
// only.
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
