// Float types on the device. Arithmetic is in f32; half and bfloat16 are storage.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "core/check.h"
#include "core/tensor.h"

namespace lockstep::kernels::cuda {
namespace {

__device__ __forceinline__ float to_float(float value) {
  return value;
}
__device__ __forceinline__ float to_float(__half value) {
  return __half2float(value);
}
__device__ __forceinline__ float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

// Rounded to nearest, ties to even.
template <class T>
__device__ __forceinline__ T from_float(float value);
template <>
__device__ __forceinline__ float from_float<float>(float value) {
  return value;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

// Tells whether an element is an infinity or a NaN: all its exponent bits are 1. Bits: the unsigned
// integer of its size.
template <class Bits>
__device__ __forceinline__ bool exponent_is_full(Bits bits, Bits exponent) {
  return (bits & exponent) == exponent;
}

// The element type of core/dtype.h that has T's bits.
template <class T>
struct HostType {
  using type = T;
};
template <>
struct HostType<__half> {
  using type = Half;
};
template <>
struct HostType<__nv_bfloat16> {
  using type = BFloat16;
};

// The elements, with device code's type; null for an undefined tensor.
// Errors: DtypeError unless T is the element type.
template <class T>
const T* elements(const Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  return reinterpret_cast<const T*>(tensor.data<typename HostType<T>::type>());
}
template <class T>
T* elements(Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  return reinterpret_cast<T*>(tensor.data<typename HostType<T>::type>());
}

// Calls body.operator()<T>() with the device's type for a float dtype. Requires: f32, f16 or bf16.
template <class Body>
void with_float_type(Dtype dtype, Body&& body) {
  switch (dtype) {
    case Dtype::kF32:
      return body.template operator()<float>();
    case Dtype::kF16:
      return body.template operator()<__half>();
    case Dtype::kBF16:
      return body.template operator()<__nv_bfloat16>();
    default:
      LS_CHECK(false, "{} is not a float type", name_of(dtype));
  }
}

}  // namespace
}  // namespace lockstep::kernels::cuda
