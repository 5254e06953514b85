// For functions that the CPU and the CUDA body of an op share: one expression, the same bits.
#pragma once

// Always inlined on the host: what a *_cpu.cpp emits is compiled for its x86-64 level alone.
#if defined(__CUDACC__)
#define LS_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define LS_HOST_DEVICE [[gnu::always_inline]] inline
#endif
