// CUDA C++'s device language for g++, force-included before everything else in an emulated .cu. The
// toolkit's own headers provide types, half and bfloat16; this header provides what only nvcc
// defines.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#define LOCKSTEP_EMULATION 1

// The toolkit's host_defines.h keeps macros that are already defined. One block at a time runs in a
// process, so its shared memory is plain static memory, which AddressSanitizer guards. It is marked
// `used` because otherwise the compiler would treat a variable that is never written as a constant
// zero.
#define __shared__ static __attribute__((used))
#define __constant__ __attribute__((section("emulated_constant")))
#define __launch_bounds__(...)
#include <cuda_runtime.h>
#undef __global__
#define __global__
#undef __device__
#define __device__
#undef __forceinline__
#define __forceinline__ inline
#undef __grid_constant__
#define __grid_constant__

#include "tests/emulation/engine.h"
#include "tests/emulation/launch.h"

#define threadIdx (::lockstep::emulation::view.thread)
#define blockIdx (::lockstep::emulation::view.block)
#define blockDim (::lockstep::emulation::view.block_size)
#define gridDim (::lockstep::emulation::view.grid_size)
constexpr int warpSize = 32;

#define LS_DYNAMIC_SHARED(T, name) \
  T* name = reinterpret_cast<T*>(::lockstep::emulation::view.dynamic_shared)

#define EMULATED_HERE \
  const ::lockstep::emulation::Location& where = ::lockstep::emulation::Location::current()

inline void __syncthreads(EMULATED_HERE) {
  lockstep::emulation::block_barrier(where);
}
inline int __syncthreads_count(int predicate, EMULATED_HERE) {
  return lockstep::emulation::block_vote(predicate, lockstep::emulation::Vote::kCount, where);
}
inline int __syncthreads_and(int predicate, EMULATED_HERE) {
  return lockstep::emulation::block_vote(predicate, lockstep::emulation::Vote::kAnd, where);
}
inline int __syncthreads_or(int predicate, EMULATED_HERE) {
  return lockstep::emulation::block_vote(predicate, lockstep::emulation::Vote::kOr, where);
}
inline void __syncwarp(unsigned mask = 0xffffffffU, EMULATED_HERE) {
  using namespace lockstep::emulation;
  warp_op(WarpOp::kSync, mask, 0, 0, warpSize, where);
}
inline unsigned __activemask() {
  return lockstep::emulation::active_mask();
}

#define EMULATED_SHUFFLE(name, op, Argument)                                                    \
  template <class T>                                                                            \
  T name(unsigned mask, T value, Argument argument, int width = warpSize, EMULATED_HERE) {      \
    using namespace lockstep::emulation;                                                        \
    return unpack<T>(warp_op(op, mask, pack(value), static_cast<int>(argument), width, where)); \
  }
EMULATED_SHUFFLE(__shfl_sync, WarpOp::kShuffle, int)
EMULATED_SHUFFLE(__shfl_up_sync, WarpOp::kShuffleUp, unsigned)
EMULATED_SHUFFLE(__shfl_down_sync, WarpOp::kShuffleDown, unsigned)
EMULATED_SHUFFLE(__shfl_xor_sync, WarpOp::kShuffleXor, int)

inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATED_HERE) {
  using namespace lockstep::emulation;
  return static_cast<unsigned>(
      warp_op(WarpOp::kBallot, mask, predicate != 0 ? 1 : 0, 0, warpSize, where));
}
inline int __all_sync(unsigned mask, int predicate, EMULATED_HERE) {
  return __ballot_sync(mask, predicate, where) == mask ? 1 : 0;
}
inline int __any_sync(unsigned mask, int predicate, EMULATED_HERE) {
  return __ballot_sync(mask, predicate, where) != 0 ? 1 : 0;
}

// Inlined, so that the address of an access resolves to the kernel's line.
#define EMULATED_INLINE __attribute__((always_inline)) inline

#define EMULATED_ATOMIC(name, expression)                           \
  template <class T>                                                \
  EMULATED_INLINE T name(T* at, std::type_identity_t<T> value) {    \
    return lockstep::emulation::atomic_change(                      \
        at, [value](T old) { return static_cast<T>(expression); }); \
  }
EMULATED_ATOMIC(atomicAdd, old + value)
EMULATED_ATOMIC(atomicMax, old < value ? value : old)
EMULATED_ATOMIC(atomicMin, value < old ? value : old)
EMULATED_ATOMIC(atomicOr, old | value)
EMULATED_ATOMIC(atomicExch, ((void)old, value))
template <class T>
EMULATED_INLINE T atomicCAS(T* at,
                            std::type_identity_t<T> expected,
                            std::type_identity_t<T> value) {
  return lockstep::emulation::atomic_change(at,
                                            [=](T old) { return old == expected ? value : old; });
}

template <class T>
EMULATED_INLINE T __ldg(const T* at) {
  return *at;
}
template <class T>
EMULATED_INLINE T __ldcs(const T* at) {
  return *at;
}
template <class T>
EMULATED_INLINE void __stwb(T* at, std::type_identity_t<T> value) {
  *at = value;
}
template <class T>
EMULATED_INLINE void __stcs(T* at, std::type_identity_t<T> value) {
  *at = value;
}

inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline float __fdividef(float a, float b) {
  return a / b;
}
inline float __expf(float x) {
  return std::exp(x);
}
inline float __logf(float x) {
  return std::log(x);
}
inline float rsqrtf(float x) {
  return 1.0F / std::sqrt(x);
}
inline float __saturatef(float x) {
  return x < 0 ? 0 : x > 1 ? 1 : x;
}
inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}
inline int __ffs(int bits) {
  return __builtin_ffs(bits);
}
inline int __clz(int bits) {
  return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits));
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((uint64_t{a} * b) >> 32);
}
inline int __float_as_int(float x) {
  return __builtin_bit_cast(int, x);
}
inline unsigned __float_as_uint(float x) {
  return __builtin_bit_cast(unsigned, x);
}
inline float __int_as_float(int bits) {
  return __builtin_bit_cast(float, bits);
}
inline float __uint_as_float(unsigned bits) {
  return __builtin_bit_cast(float, bits);
}

// CUDA's overloads are in the global namespace. For floats, a NaN loses against a number, as in
// fminf and fmaxf.
using std::isfinite;
using std::isinf;
using std::isnan;
#define EMULATED_MIN_MAX(T) \
  inline T min(T a, T b) {  \
    return b < a ? b : a;   \
  }                         \
  inline T max(T a, T b) {  \
    return a < b ? b : a;   \
  }
EMULATED_MIN_MAX(int)
EMULATED_MIN_MAX(unsigned)
EMULATED_MIN_MAX(long)
EMULATED_MIN_MAX(unsigned long)
EMULATED_MIN_MAX(long long)
EMULATED_MIN_MAX(unsigned long long)
inline float min(float a, float b) {
  return fminf(a, b);
}
inline float max(float a, float b) {
  return fmaxf(a, b);
}
