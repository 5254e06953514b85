// Consecutive elements that are moved 16 bytes at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include <cuda_runtime.h>

namespace lockstep::kernels::cuda {
namespace {

template <class T, int kCount>
struct Pack {
  T values[kCount];

  __device__ __forceinline__ T& operator[](int i) { return values[i]; }
  const __device__ __forceinline__ T& operator[](int i) const { return values[i]; }
};

// The integer type that moves `kBytes`, a power of two up to 16.
template <size_t kBytes>
struct Word;
template <>
struct Word<1> {
  using type = uint8_t;
};
template <>
struct Word<2> {
  using type = uint16_t;
};
template <>
struct Word<4> {
  using type = unsigned;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};
template <class T, int kCount>
using WordOf = typename Word<(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16)>::type;

// A pack as words, which takes the fewest registers while a load is in flight.
template <class T, int kCount>
struct RawPack {
  using W = WordOf<T, kCount>;
  static constexpr int kWords = static_cast<int>(sizeof(T) * kCount / sizeof(W));
  W words[kWords];

  __device__ __forceinline__ Pack<T, kCount> elements() const {
    Pack<T, kCount> pack;
    memcpy(static_cast<void*>(&pack), words, sizeof(pack));
    return pack;
  }
};

// Requires: `from` aligned to the pack's size, at most 16 bytes.
template <int kCount, class T>
__device__ __forceinline__ RawPack<T, kCount> load_raw(const T* from) {
  using Raw = RawPack<T, kCount>;
  Raw raw;
#pragma unroll
  for (int i = 0; i < Raw::kWords; ++i)
    raw.words[i] = reinterpret_cast<const typename Raw::W*>(from)[i];
  return raw;
}
template <int kCount, class T>
__device__ __forceinline__ Pack<T, kCount> load_pack(const T* from) {
  return load_raw<kCount>(from).elements();
}

template <int kCount, class T>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, kCount>& pack) {
  using Raw = RawPack<T, kCount>;
  Raw raw;
  memcpy(raw.words, static_cast<const void*>(&pack), sizeof(pack));
#pragma unroll
  for (int i = 0; i < Raw::kWords; ++i) reinterpret_cast<typename Raw::W*>(to)[i] = raw.words[i];
}

// True when every pointer is aligned to 16 bytes; null counts as aligned.
inline bool aligned(std::initializer_list<const void*> pointers) {
  uintptr_t bits = 0;
  for (const void* pointer : pointers) bits |= reinterpret_cast<uintptr_t>(pointer);
  return bits % 16 == 0;
}

// store_pack() for a loop over pointers, where the compiler would split its words.
// Requires: `to` in device memory.
template <int kCount, class T>
__device__ __forceinline__ void store_pack_whole(T* to, const Pack<T, kCount>& pack) {
  using W = WordOf<T, kCount>;
  constexpr int kWords = static_cast<int>(sizeof(T) * kCount / sizeof(W));
  W words[kWords];
  memcpy(words, static_cast<const void*>(&pack), sizeof(pack));
#pragma unroll
  for (int i = 0; i < kWords; ++i) __stwb(reinterpret_cast<W*>(to) + i, words[i]);
}

}  // namespace
}  // namespace lockstep::kernels::cuda
